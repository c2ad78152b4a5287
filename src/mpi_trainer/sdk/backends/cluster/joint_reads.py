"""One read for all who ask for the same thing before it begins.

Guarantee: who asks gets an answer that was begun after they asked, so nothing in it is older than
the question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class JointReads(Generic[T]):
    """Of one connection, so of one login, in one event loop."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[T]] = {}
        self._next: dict[str, asyncio.Task[T]] = {}

    async def read(self, name: str, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` gives, which must be the same for all who use this name."""
        found = self._next.get(name)
        if found is None:
            found = asyncio.get_running_loop().create_task(self._run(name, work))
            self._next[name] = found
        # Whoever leaves must not take the answer of the others along.
        return await asyncio.shield(found)

    async def _run(self, name: str, work: Callable[[], Awaitable[T]]) -> T:
        before = self._running.get(name)
        if before is not None:
            await asyncio.wait({before})
        task = self._running[name] = self._next.pop(name)
        try:
            return await work()
        finally:
            if self._running[name] is task:
                del self._running[name]
