"""What a caller may see, asked of the API server in their own name and for a minute believed.

Guarantee: nobody is given anything later than `seconds` after their right to it was taken away, or
after the time at which their token says that it ends.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from mpi_trainer.sdk.backends.backend import Backend
from mpi_trainer.server.problems import Refused, refused

SECONDS: Final = 60.0
MOST: Final = 20_000
"""answers that are remembered"""


class Reader(msgspec.Struct, frozen=True):
    """Who reads: `id` tells callers apart, `expires` is when their token ends (epoch seconds; None
    where it does not say), and `backend` acts with their rights."""

    id: str
    backend: Backend
    expires: float | None = None

    def check_login(self) -> None:
        if self.expires is not None and time.time() >= self.expires:
            raise refused(
                401,
                "unauthorized",
                "the login has expired",
                "Log in again, and open the stream with the new token.",
            )

    def patience(self, most: float) -> float:
        """Seconds to wait at most, so that the end of the login is not missed."""
        return most if self.expires is None else max(0.0, min(most, self.expires - time.time()))


class Answered(msgspec.Struct, frozen=True):
    allowed: bool
    at: float


class Access:
    """Answers to access reviews of all callers."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._known: OrderedDict[tuple[str, ...], Answered] = OrderedDict()
        self._asking: dict[tuple[str, ...], asyncio.Future[bool]] = {}

    async def watch_jobs(self, reader: Reader, kind: str, namespace: str) -> bool:
        """Whether they may list and watch the jobs; of all namespaces where none is named."""
        place = (reader.id, "jobs", kind, namespace)
        return await self._answer(place, reader, lambda b: b.live.may_watch(kind, namespace))

    async def list_jobs(self, reader: Reader, kind: str, namespace: str) -> bool:
        place = (reader.id, "list", kind, namespace)
        return await self._answer(place, reader, lambda b: b.live.may_list(kind, namespace))

    async def read_logs(self, reader: Reader, namespace: str) -> bool:
        place = (reader.id, "logs", namespace)
        return await self._answer(place, reader, lambda b: b.live.may_read_logs(namespace))

    async def _answer(
        self, place: tuple[str, ...], reader: Reader, ask: Callable[[Backend], Awaitable[bool]]
    ) -> bool:
        reader.check_login()
        now = asyncio.get_running_loop().time()
        known = self._known.get(place)
        if known is not None and now - known.at < self.seconds:
            return known.allowed
        # Several streams of one caller ask once. Whoever leaves must not take the answer along.
        asking = self._asking.get(place)
        if asking is None:
            asking = asyncio.ensure_future(self._asked(place, ask(reader.backend)))
            self._asking[place] = asking
            asking.add_done_callback(lambda _: self._asking.pop(place, None))
        return await asyncio.shield(asking)

    async def _asked(self, place: tuple[str, ...], answer: Awaitable[bool]) -> bool:
        # As old as the question: the answer holds for a moment between the two.
        at = asyncio.get_running_loop().time()
        allowed = await answer
        self._known[place] = Answered(allowed, at)
        self._known.move_to_end(place)
        if len(self._known) > MOST:
            self._known.popitem(last=False)
        return allowed


def forbidden(what: str, namespace: str) -> Refused:
    where = f"in namespace {namespace}" if namespace else "of all namespaces"
    return refused(
        403,
        "cluster",
        f"forbidden: you may not {what} {where}",
        f"Ask an administrator for the right to {what} {where}; the role mpijob-viewer has it.",
    )
