"""How many writes are on the way at once: as many as the API server takes.

Grows by one with every answer and halves when the server says 429, as networks do. Guarantee: a
write that was refused for overload is tried again, later and with fewer beside it, until `patience`
is over. Only 429 is repeated here: the server has not processed such a request.
Namespaces take turns with the writes that wait, and the passes of a namespace take turns with its
own: neither a job of thousands nor a namespace of many holds up another.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Final, TypeVar

from mpi_trainer.kube.errors import TooManyRequests
from mpi_trainer.runtime.fair_queue import NestedFairQueue

T = TypeVar("T")

_FIRST: Final = 32
_MOST: Final = 64
_LEAST: Final = 1
_LONGEST_REST: Final = 8.0
_RECENT_SECONDS: Final = 10.0


class WriteConcurrency:
    """Shared by all jobs of a controller."""

    def __init__(
        self,
        first: int = _FIRST,
        most: int = _MOST,
        patience: float = 45.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = float(first)
        self._most = float(most)
        self._patience = patience
        self._clock = clock
        self._on_the_way = 0
        self._writes, self._counted = 0.0, 0.0
        self._waiting: NestedFairQueue[asyncio.Future[None], None] = NestedFairQueue()

    @property
    def limit(self) -> int:
        return max(int(self._limit), _LEAST)

    @property
    def recent_writes(self) -> float:
        """How many writes there were in the last ten seconds or so; older ones count less."""
        return self._writes * math.exp((self._counted - self._clock()) / _RECENT_SECONDS)

    async def each(
        self, acts: Iterable[Callable[[], Awaitable[T]]], namespace: str = ""
    ) -> list[T | Exception]:
        """All of one pass, in any order; what went wrong is returned in its place."""
        todo = list(enumerate(acts))
        done: dict[int, T | Exception] = {}
        one_pass, left = object(), iter(todo)

        async def some() -> None:
            for number, act in left:
                done[number] = await self._one(act, namespace, one_pass)

        # No more tasks than can be on their way: ten thousand at once would hold up the loop.
        await asyncio.gather(*(some() for _ in range(min(len(todo), int(self._most)))))
        return [done[number] for number, _ in todo]

    async def _one(
        self, act: Callable[[], Awaitable[T]], namespace: str, one_pass: object
    ) -> T | Exception:
        try:
            return await self._send(act, namespace, one_pass)
        except Exception as error:
            return error

    async def send(self, act: Callable[[], Awaitable[T]], namespace: str = "") -> T:
        """One write, in the turn of its namespace."""
        return await self._send(act, namespace, object())

    async def _send(self, act: Callable[[], Awaitable[T]], namespace: str, one_pass: object) -> T:
        loop = asyncio.get_running_loop()
        until, tried = loop.time() + self._patience, 0
        while True:
            await self._enter(namespace, one_pass)
            try:
                answer = await act()
            except TooManyRequests as refusal:
                self._limit = max(self._limit / 2, _LEAST)
                tried += 1
                rest = _rest(refusal.retry_after, tried)
                if loop.time() + rest > until:
                    raise
            else:
                self._limit = min(self._limit + 1 / self._limit, self._most)
                return answer
            finally:
                self._on_the_way -= 1
                self._admit()
            await asyncio.sleep(rest)

    async def _enter(self, namespace: str, one_pass: Hashable) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put(namespace, one_pass, turn, None)
        self._admit()
        try:
            await turn
        except BaseException:
            if turn.cancelled():
                if self._waiting.holds(namespace, one_pass, turn):
                    self._waiting.remove(namespace, one_pass, turn)
            else:
                self._on_the_way -= 1  # it was let in at the moment it was cancelled
                self._admit()
            raise
        self._writes, self._counted = self.recent_writes + 1, self._clock()

    def _admit(self) -> None:
        """One for each free place, and nobody else is woken."""
        while self._waiting and self._on_the_way < self.limit:
            turn, _ = self._waiting.take()
            if not turn.done():
                self._on_the_way += 1
                turn.set_result(None)


def _rest(retry_after: float | None, tried: int) -> float:
    """At least what the server asks for, and never all at the same moment."""
    own: float = min(0.2 * 2 ** (tried - 1), _LONGEST_REST) * (0.5 + random.random())
    return own if retry_after is None else retry_after + own
