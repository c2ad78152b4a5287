"""Long work on what users write, beside the event loop.

One piece at a time: however many large objects come at once, the loop shares the interpreter with
one thread only, and is late by no more than that thread's turn (5 ms). Namespaces take turns, so
that one's large objects never keep another's waiting. Danger: the work must be pure, since
everything else goes on meanwhile; and it is not interrupted: who no longer waits for a piece has
it finished all the same, before the next begins.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from mpi_trainer.api import bounds
from mpi_trainer.runtime.fair_queue import FairQueue

P = ParamSpec("P")
T = TypeVar("T")

POD_BYTES: Final = 64
"""what a pod takes to be rendered, as much as so much text to be read"""
LONG: Final = bounds.SHORT_TEXT + 1
"""of what nobody knows how long it takes"""


class OffLoop:
    """For one event loop."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "long-work")
        self._busy = False
        self._waiting: FairQueue[asyncio.Future[None], None] = FairQueue()

    async def run(
        self, namespace: str, size: int, act: Callable[P, T], *args: P.args, **names: P.kwargs
    ) -> T:
        """`act`, which reads about `size` bytes of somebody in `namespace`: at once where they are
        few."""
        if size <= bounds.SHORT_TEXT:
            return act(*args, **names)
        await self._enter(namespace)
        try:
            piece = functools.partial(act, *args, **names)
            return await asyncio.get_running_loop().run_in_executor(self._thread, piece)
        finally:
            self._next()

    async def _enter(self, namespace: str) -> None:
        if not self._busy:
            self._busy = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put(namespace, turn, None)
        try:
            await turn
        except BaseException:
            if turn.cancelled():
                if self._waiting.holds(namespace, turn):
                    self._waiting.remove(namespace, turn)
            else:
                self._next()  # it had its turn at the moment it was cancelled
            raise

    def _next(self) -> None:
        while self._waiting:
            turn, _ = self._waiting.take()
            if not turn.done():
                turn.set_result(None)
                return
        self._busy = False
