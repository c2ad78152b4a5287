"""Long work goes on beside the loop, one piece at a time, and namespaces take turns (S-1, W-7)."""

from __future__ import annotations

import asyncio
import threading
import time

from mpi_trainer.runtime.off_loop import LONG, OffLoop


def test_short_work_is_done_at_once_and_long_work_beside_the_loop() -> None:
    async def run() -> None:
        here, long = threading.get_ident(), OffLoop()
        assert await long.run("a", 1, threading.get_ident) == here
        assert await long.run("a", LONG, threading.get_ident) != here

    asyncio.run(run())


def test_one_namespaces_large_objects_do_not_keep_anothers_waiting() -> None:
    async def run() -> None:
        long, order = OffLoop(), list[str]()
        flood = [asyncio.create_task(long.run("a", LONG, order.append, "a")) for _ in range(20)]
        await asyncio.sleep(0)
        await long.run("b", LONG, order.append, "b")
        await asyncio.gather(*flood)
        assert order.index("b") <= 2
        assert len(order) == 21

    asyncio.run(run())


def test_who_goes_away_leaves_no_second_thread_at_work() -> None:
    """A review that has lasted too long is cancelled, and its thread is not."""
    now, most, lock = 0, 0, threading.Lock()

    def piece() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)  # long enough for a second piece to come in, were it let
        with lock:
            now -= 1

    async def run() -> None:
        long = OffLoop()
        for _ in range(5):
            gone = asyncio.create_task(long.run("a", LONG, piece))
            await asyncio.sleep(0.005)
            gone.cancel()
        waits = [asyncio.create_task(long.run("a", LONG, piece)) for _ in range(3)]
        await asyncio.sleep(0)
        waits[1].cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        await long.run("b", LONG, piece)

    asyncio.run(run())
    assert most == 1
