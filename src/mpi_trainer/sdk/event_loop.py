"""One event loop in a thread of its own, for callers that are not asynchronous.

Guarantee: `run` and `iterate` work from any thread, inside a running event loop as well (a
notebook), and Ctrl-C cancels what was asked for. The thread starts with the first call and holds
no client and no login. A forked child starts its own. Danger: called from the loop itself they
would wait for ever, so they refuse.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

T = TypeVar("T")

# Items are handed over in bunches: one at a time would cost two thread switches an item.
MOST_WAITING = 4096


class _Thread:
    """The loop, once it is needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: AbstractEventLoop | None = None
        self._ident: int | None = None

    def loop(self) -> AbstractEventLoop:
        import asyncio

        if threading.get_ident() == self._ident:
            raise RuntimeError(
                "a blocking call was made on the event loop that has to answer it; "
                "use the Async classes in coroutines"
            )
        with self._lock:
            if self._loop is None:
                loop = self._loop = asyncio.new_event_loop()
                thread = threading.Thread(target=loop.run_forever, name="mpi-trainer", daemon=True)
                thread.start()
                self._ident = thread.ident
            return self._loop


_thread = _Thread()


def _after_fork() -> None:
    global _thread
    _thread = _Thread()


os.register_at_fork(after_in_child=_after_fork)


def run(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns, or raises."""
    import asyncio

    try:
        loop = _thread.loop()
    except RuntimeError:
        work.close()
        raise
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    finally:
        future.cancel()  # an interrupt of the caller ends the work; else it is done already


def iterate(source: AsyncIterator[T]) -> Iterator[T]:
    """The items of `source` as they come; leaving the loop over them ends the source."""
    import asyncio

    loop = _thread.loop()
    bunches: _Bunches[T] = _Bunches(loop)
    pump = asyncio.run_coroutine_threadsafe(bunches.fill(source), loop)
    try:
        while bunch := bunches.take():
            yield from bunch
        pump.result()
    finally:
        pump.cancel()


class _Bunches(Generic[T]):
    """Between the loop, which fills, and one thread, which takes."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        import asyncio

        self._loop = loop
        self._items: list[T] = []
        self._changed = threading.Condition()
        self._ended = False
        self._room = asyncio.Event()

    async def fill(self, source: AsyncIterator[T]) -> None:
        try:
            async for item in source:
                if self._put(item):
                    await self._room.wait()
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify()
            await _close(source)

    def _put(self, item: T) -> bool:
        """Whether so much waits already that no more should come."""
        with self._changed:
            self._items.append(item)
            self._changed.notify()
            full = len(self._items) >= MOST_WAITING
            if full:
                self._room.clear()
            return full

    def take(self) -> list[T]:
        """Everything that has come, at least one item; nothing at the end."""
        with self._changed:
            while not self._items and not self._ended:
                self._changed.wait()
            taken, self._items = self._items, []
        self._loop.call_soon_threadsafe(self._room.set)
        return taken


async def _close(source: AsyncIterator[object]) -> None:
    """Ends an iterator that may hold files or connections; not every kind can be ended."""
    ending = getattr(source, "aclose", None)
    if ending is not None:
        await ending()
