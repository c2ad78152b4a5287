"""How many calls of an expensive sort go on at once: in all, and for each caller; and that they end
when nobody waits for them any more."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from aiohttp import web

from mpi_trainer.server.problems import Refused, problem, refused

LOOK_SECONDS: Final = 1.0
T = TypeVar("T")


class Turns:
    """Nobody waits here: who finds no room is told to come again."""

    def __init__(self, what: str, each: int, most: int) -> None:
        self._what = what
        self._each = each
        self._most = most
        self._held: Counter[str] = Counter()

    @contextmanager
    def taken(self, caller: str) -> Iterator[None]:
        """Raises a problem where there is no room."""
        if self._held[caller] >= self._each:
            raise self._full(429, f"you have {self._each} {self._what} under way already")
        if self._held.total() >= self._most:
            raise self._full(503, f"{self._most} {self._what} are under way already")
        self._held[caller] += 1
        try:
            yield
        finally:
            self._held[caller] -= 1
            if not self._held[caller]:
                del self._held[caller]

    def _full(self, status: int, detail: str) -> Refused:
        found = problem(status, "busy", detail, "Wait until it has ended, and repeat the call.")
        return Refused(found, (("Retry-After", "5"),))


async def while_connected(request: web.Request, work: Awaitable[T]) -> T:
    """Cancels the work where the caller is gone, and waits until it has cleaned up."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=LOOK_SECONDS)
            if request.transport is None:
                task.cancel()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    if task.cancelled():
        raise refused(408, "gone", "the caller did not wait for the answer")
    return task.result()
