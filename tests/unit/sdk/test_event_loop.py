"""Synchronous calls on one background loop: from anywhere, without loss, and to be interrupted."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from mpi_trainer.sdk import event_loop
from mpi_trainer.sdk.synchronous import blocking, iterating


class Async:
    async def double(self: Async, number: int, *, more: int = 0) -> int:
        """Twice as much."""
        await asyncio.sleep(0)
        return number * 2 + more

    async def upto(self: Async, end: int) -> AsyncIterator[int]:
        for number in range(end):
            yield number


class Sync(Async):
    twice = blocking(Async.double)
    counted = iterating(Async.upto)


def test_result_and_error_come_back() -> None:
    async def fail() -> None:
        raise LookupError("no")

    assert Sync().twice(4, more=1) == 9
    with pytest.raises(LookupError, match="no"):
        event_loop.run(fail())


def test_call_works_inside_a_running_loop() -> None:
    async def cell() -> int:
        return Sync().twice(2) + sum(Sync().counted(3))

    assert asyncio.run(cell()) == 7


def test_call_on_the_background_loop_itself_is_refused() -> None:
    async def inside() -> int:
        return Sync().twice(1)

    with pytest.raises(RuntimeError, match="use the Async classes"):
        event_loop.run(inside())


def test_many_threads_share_one_loop_thread() -> None:
    results: list[int] = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(Sync().twice(n))) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [n * 2 for n in range(8)]
    assert [t.name for t in threading.enumerate()].count("mpi-trainer") == 1


def test_no_item_is_lost_or_swapped() -> None:
    count = event_loop.MOST_WAITING * 3 + 7
    assert list(Sync().counted(count)) == list(range(count))


def test_slow_reader_holds_the_source_back() -> None:
    made = 0

    async def source() -> AsyncIterator[int]:
        nonlocal made
        for made in range(event_loop.MOST_WAITING * 10):
            yield made

    items = event_loop.iterate(source())
    assert next(items) == 0
    event_loop.run(asyncio.sleep(0.1))
    assert made <= event_loop.MOST_WAITING * 2
    assert isinstance(items, Iterator)


def test_error_of_the_source_comes_after_its_items() -> None:
    async def source() -> AsyncIterator[int]:
        yield 1
        raise LookupError("gone")

    items = event_loop.iterate(source())
    assert next(items) == 1
    with pytest.raises(LookupError, match="gone"):
        next(items)


@pytest.mark.parametrize("leave", ["close", "forget"])
def test_source_ends_when_its_reader_leaves(leave: str) -> None:
    ended = threading.Event()

    async def source() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
                await asyncio.sleep(0.001)
        finally:
            ended.set()

    items = event_loop.iterate(source())
    assert next(items) == 1
    if leave == "close":
        items.close()  # type: ignore[attr-defined]
    del items
    gc.collect()
    assert ended.wait(5)


def test_interrupt_cancels_what_was_asked_for() -> None:
    begun, ended = threading.Event(), threading.Event()

    async def long() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    def interrupt() -> None:
        begun.wait(5)
        time.sleep(0.1)  # the caller shall be waiting by then
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    helper = threading.Thread(target=interrupt)
    helper.start()
    with pytest.raises(KeyboardInterrupt):
        event_loop.run(long())
    helper.join()
    assert ended.wait(5)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forked_child_has_a_loop_of_its_own() -> None:
    assert Sync().twice(1) == 2
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a child without a loop would wait for ever
        os._exit(0 if Sync().twice(3) == 6 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_signature_and_text_are_those_of_the_asynchronous_method() -> None:
    assert (
        str(inspect.signature(Sync.twice)) == "(self, number: 'int', *, more: 'int' = 0) -> 'int'"
    )
    assert inspect.signature(Sync.counted).return_annotation == "Iterator[int]"
    assert Sync.twice.__doc__ == "Twice as much."
    assert not inspect.iscoroutinefunction(Sync.twice)
