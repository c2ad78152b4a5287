"""One read for all who want the same thing at the same time.

Guarantee: nobody gets the answer to a read that began before he asked, so whoever writes one object
and then another that refers to it is understood as he meant it. At most one read of a key is on its
way; all who ask meanwhile, and where wanted for a moment longer, share the next. A reader who goes
away does not end the others' read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class CoalescedReads(Generic[K, V]):
    """For one event loop; nothing is kept once it has been read. `gather`: seconds that a read
    waits for others who want it."""

    def __init__(self, read: Callable[[K], Awaitable[V]], gather: float = 0.0) -> None:
        self._read = read
        self._gather = gather
        self._next: dict[K, asyncio.Task[V]] = {}
        self._last: dict[K, asyncio.Task[Any]] = {}

    async def get(self, key: K) -> V:
        turn = self._next.get(key)
        if turn is None:
            turn = asyncio.get_running_loop().create_task(self._turn(key, self._last.get(key)))
            turn.add_done_callback(_heard)
            self._next[key] = self._last[key] = turn
        return await asyncio.shield(turn)

    async def _turn(self, key: K, before: asyncio.Task[Any] | None) -> V:
        if before is not None:
            await asyncio.wait((before,))
        if self._gather:
            await asyncio.sleep(self._gather)
        mine = self._next.pop(key)
        try:
            return await self._read(key)
        finally:
            if self._last.get(key) is mine:
                del self._last[key]


def _heard(turn: asyncio.Task[Any]) -> None:
    """Its failure is its readers' business; where all have gone away it is nobody's."""
    if not turn.cancelled():
        turn.exception()
