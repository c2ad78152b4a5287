"""Following a job: what it waits for while it waits, how it ended, and the exit code of that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from mpi_trainer.api.kinds import conditions
from mpi_trainer.cli import context
from mpi_trainer.cli.main import FAILED, INTERRUPTED
from mpi_trainer.cli.output import formatting, terminal
from mpi_trainer.cli.output.verbosity import say
from mpi_trainer.sdk.backends.backend import Backend, JobView, Key, RankInfo
from mpi_trainer.sdk.errors import JobError, JobNotFound, JobTimeout

T = TypeVar("T")
FIRST_SECONDS = 3.0
EVERY_SECONDS = 10.0
LOOK_SECONDS = 0.2
MOST_RANKS = 16
_WELL = ("0", "exit code 0")
_WAITS = (conditions.CREATED, conditions.SUSPENDED, conditions.RESTARTING)


async def watched(backend: Backend, key: Key) -> AsyncIterator[JobView]:
    """`backend.watch`; whoever waits longer than a moment is told why, once for each reason."""
    async with reported_waits(backend, key) as report:
        async for job in backend.watch(key):
            report.state = job.state
            yield job


@asynccontextmanager
async def reported_waits(backend: Backend, key: Key) -> AsyncIterator[WaitReport]:
    report = WaitReport(backend, key)
    task = asyncio.create_task(report.run())
    try:
        yield report
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class WaitReport:
    """Says what the job waits for while its `state` is one of waiting."""

    def __init__(self, backend: Backend, key: Key) -> None:
        self.state = conditions.CREATED
        self._backend = backend
        self._key = key
        self._said = ""

    def stop(self) -> None:
        self.state = ""

    async def run(self) -> None:
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


async def verdict(backend: Backend, key: Key, *, ranks: bool = False) -> int:
    """Says how the job ended, or that it is gone; 0 only for success. Of one that failed, with
    `ranks`, also how its ranks ended."""
    try:
        job = await backend.get(key)
    except JobNotFound as error:
        raise JobNotFound(
            f"job {key.name} was deleted while it was followed",
            f"Its output is gone with it; run it again with `{context.command_line('create')}`.",
        ) from error
    if ranks and job.state == conditions.FAILED:
        table = rank_table((await backend.details(key)).ranks)
        if table:
            say(f"\n{table}\n")
    return report_end(job)


def rank_table(ranks: Sequence[RankInfo]) -> str:
    """How ranks ended; of many only those that did not end well. Empty where nobody knows."""
    shown = [rank for rank in ranks if rank.end]
    if len(shown) > MOST_RANKS:
        shown = [rank for rank in shown if rank.end not in _WELL]
    if not shown:
        return ""
    rows = [(str(rank.rank), rank.pod, rank.end) for rank in shown[:MOST_RANKS]]
    table = terminal.table(("RANK", "POD", "EXIT"), rows)
    more = len(shown) - len(rows)
    return f"{table}\nand {more} more" if more else table


def report_end(job: JobView) -> int:
    """Says how the job stands; the exit code that follows from it."""
    state = job.state
    took = formatting.between(job.times.started, job.times.completed)
    if state == conditions.SUCCEEDED:
        say(f"{terminal.good(state)} after {took}")
        return 0
    if state == conditions.FAILED:
        terminal.say(f"{terminal.bad(state)} after {took}: {job.message}")
        say(f"see more with `{context.command_line('describe', job.name, job.namespace)}`")
        return FAILED
    say(f"{job.name} is {state}")
    return 0


def left(key: Key, verb: str) -> int:
    """After Ctrl-C: the job goes on, and this is how to come back."""
    terminal.say(
        f"\njob {key.name} keeps running; follow it with "
        f"`{context.command_line(verb, key.name, key.namespace)}`, "
        f"stop it with `{context.command_line('delete', key.name, key.namespace)}`"
    )
    return INTERRUPTED


async def pause() -> None:
    """Between two looks at something that nobody reports."""
    await asyncio.sleep(LOOK_SECONDS)


async def within(seconds: float | None, work: Callable[[], Awaitable[T]], key: Key, aim: str) -> T:
    """The work's result, or JobTimeout (exit code 124) after that long."""
    try:
        async with asyncio.timeout(seconds):
            return await work()
    except TimeoutError as error:
        if isinstance(error, JobTimeout):
            raise
        took = formatting.duration(seconds or 0)
        raise JobTimeout(
            f"timed out after {took}: job {key.name} is not {aim} yet, and keeps running",
            f"Look at it with `{context.command_line('describe', key.name, key.namespace)}`.",
        ) from error
