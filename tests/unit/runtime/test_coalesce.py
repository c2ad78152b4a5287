"""One read for all who ask at the same time, and never one that began too early."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from mpi_trainer.runtime.coalesce import CoalescedReads


class Shelf:
    """What is read; `open` lets reads that are on their way end."""

    def __init__(self) -> None:
        self.text = "old"
        self.reads = 0
        self.open = asyncio.Event()
        self.open.set()

    async def read(self, key: str) -> str:
        self.reads += 1
        found = self.text
        await self.open.wait()
        if found == "bad":
            raise LookupError(key)
        return f"{key}: {found}"


def run(life: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(life, 10))


def test_all_who_ask_at_once_share_one_read() -> None:
    async def life() -> None:
        shelf = Shelf()
        reads = CoalescedReads(shelf.read)
        assert await asyncio.gather(*(reads.get("a") for _ in range(50))) == ["a: old"] * 50
        assert shelf.reads == 1
        assert await reads.get("a") == "a: old"
        assert shelf.reads == 2

    run(life())


def test_who_asks_while_a_read_is_on_its_way_gets_what_was_written_before_he_asked() -> None:
    async def life() -> None:
        shelf = Shelf()
        reads = CoalescedReads(shelf.read)
        shelf.open.clear()
        first = asyncio.create_task(reads.get("a"))
        await asyncio.sleep(0.01)
        shelf.text = "new"
        later = [asyncio.create_task(reads.get("a")) for _ in range(50)]
        other = asyncio.create_task(reads.get("b"))
        await asyncio.sleep(0.01)
        assert shelf.reads == 2, "one of each key is on its way"
        shelf.open.set()
        assert await first == "a: old"
        assert await asyncio.gather(*later) == ["a: new"] * 50
        assert await other == "b: new"
        assert shelf.reads == 3

    run(life())


def test_a_failure_is_its_readers_own_and_one_who_goes_away_ends_nothing() -> None:
    async def life() -> None:
        shelf = Shelf()
        reads = CoalescedReads(shelf.read)
        shelf.open.clear()
        shelf.text = "bad"
        waiting = [asyncio.create_task(reads.get("a")) for _ in range(2)]
        await asyncio.sleep(0.01)
        waiting[0].cancel()
        shelf.text = "good"
        after = asyncio.create_task(reads.get("a"))
        await asyncio.sleep(0.01)
        shelf.open.set()
        with pytest.raises(LookupError):
            await waiting[1]
        assert await after == "a: good"

    run(life())


def test_a_read_that_gathers_waits_for_those_who_ask_soon_after() -> None:
    async def life() -> None:
        shelf = Shelf()
        reads = CoalescedReads(shelf.read, gather=0.2)
        first = asyncio.create_task(reads.get("a"))
        await asyncio.sleep(0.02)
        shelf.text = "new"
        assert await reads.get("a") == "a: new"
        assert await first == "a: new"
        assert shelf.reads == 1

    run(life())
