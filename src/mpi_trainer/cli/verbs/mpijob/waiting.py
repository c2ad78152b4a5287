"""A job that is watched, and beside it every few seconds what it waits for, where it waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from mpi_trainer.api.kinds import conditions
from mpi_trainer.cli.output.verbosity import say
from mpi_trainer.sdk.backends.backend import Backend, JobView, Key
from mpi_trainer.sdk.errors import JobError

FIRST_SECONDS = 3.0
EVERY_SECONDS = 10.0
_WAITS = (conditions.CREATED, conditions.SUSPENDED, conditions.RESTARTING)


async def watched(backend: Backend, key: Key) -> AsyncIterator[JobView]:
    """`backend.watch`; whoever waits longer than a moment is told why, once for each reason."""
    async with telling(backend, key) as teller:
        async for job in backend.watch(key):
            teller.state = job.state
            yield job


@asynccontextmanager
async def telling(backend: Backend, key: Key) -> AsyncIterator[Teller]:
    teller = Teller(backend, key)
    task = asyncio.create_task(teller.tell())
    try:
        yield teller
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class Teller:
    """Says what the job waits for while its `state` is one of waiting."""

    def __init__(self, backend: Backend, key: Key) -> None:
        self.state = conditions.CREATED
        self._backend = backend
        self._key = key
        self._said = ""

    def stop(self) -> None:
        self.state = ""

    async def tell(self) -> None:
        pause = FIRST_SECONDS
        while True:
            await asyncio.sleep(pause)
            pause = EVERY_SECONDS
            if self.state not in _WAITS:
                continue
            # What it waits for is an extra: the watch itself says what goes wrong.
            with suppress(JobError):
                reason = (await self._backend.details(self._key)).waits_for
                if reason and reason != self._said:
                    self._said = reason
                    say(f"{self._key.name} waits: {reason}")
