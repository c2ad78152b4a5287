"""Reads of lists: one caller's calls share them, further pages are cut from them, nobody else."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from mpi_trainer.sdk.backends.backend import JobSummary, Key
from mpi_trainer.server import job_reads, paging
from mpi_trainer.server.endpoint import Call
from mpi_trainer.server.endpoints.jobs import list_jobs
from mpi_trainer.server.everywhere import Found
from mpi_trainer.server.job_reads import CallerReads, JobReads, Read
from mpi_trainer.server.paging import ListQuery

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Cluster:
    """Counts what is read of it, and answers when it is let go on."""

    def __init__(self, jobs: int = 1) -> None:
        self.reads = 0
        self.jobs = [JobSummary(Key("a", f"job-{n}"), "Running", NOW) for n in range(jobs)]
        self.open = asyncio.Event()
        self.open.set()
        self.broken_off = 0

    async def list(self) -> Found:
        self.reads += 1
        found = list(self.jobs)
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.broken_off += 1
            raise
        return found, ()


def checked(body: Callable[[Cluster, JobReads], Awaitable[None]]) -> None:
    async def run() -> None:
        await body(Cluster(), JobReads())

    asyncio.run(run())


def read(
    reads: JobReads, cluster: Cluster, caller: str = "anna", name: str = "", kind: str = ""
) -> asyncio.Task[Read]:
    mine = CallerReads(reads, caller, kind)
    return asyncio.ensure_future(mine.read("a", "", cluster.list, name))


def test_a_name_gives_the_same_read_to_its_caller_and_a_fresh_one_to_any_other() -> None:
    async def body(cluster: Cluster, reads: JobReads) -> None:
        first = await read(reads, cluster)
        assert await read(reads, cluster, name=first.name) is first and cluster.reads == 1
        for other in ({"caller": "ben"}, {"kind": "MPIJob"}, {"name": "made-up"}):
            found = await read(reads, cluster, **({"name": first.name} | other))
            assert found is not first
        assert cluster.reads == 4

    checked(body)


def test_a_read_from_before_a_change_is_kept_for_no_page_whoever_has_left_meanwhile() -> None:
    async def body(cluster: Cluster, reads: JobReads) -> None:
        cluster.open.clear()
        first = read(reads, cluster)
        await asyncio.sleep(0.01)
        left = read(reads, cluster)
        await asyncio.sleep(0.01)
        left.cancel()
        await asyncio.wait({left})
        reads.forget("anna")
        cluster.open.set()
        again = await read(reads, cluster, name=(await first).name)
        assert again is not await first and cluster.reads == 2

    checked(body)


def test_who_asks_while_it_is_read_gets_what_was_there_when_they_asked() -> None:
    async def body(cluster: Cluster, reads: JobReads) -> None:
        cluster.open.clear()
        first = read(reads, cluster)
        await asyncio.sleep(0.01)
        cluster.jobs.append(JobSummary(Key("a", "new"), "Created", NOW))
        later = [read(reads, cluster) for _ in range(20)]
        strange = read(reads, cluster, "ben")
        await asyncio.sleep(0.01)
        assert cluster.reads == 2, "one of each caller"
        cluster.open.set()
        assert len((await first).jobs) == 1
        found = await asyncio.gather(*later)
        assert all(one is found[0] and len(one.jobs) == 2 for one in found)
        assert len((await strange).jobs) == 2 and cluster.reads == 3

    checked(body)


def test_a_change_of_the_caller_ends_their_reads_and_no_others() -> None:
    async def body(cluster: Cluster, reads: JobReads) -> None:
        kept, other = await read(reads, cluster), await read(reads, cluster, "ben")
        cluster.open.clear()
        running = read(reads, cluster, kind="MPIJob")
        await asyncio.sleep(0.01)
        reads.forget("anna")
        cluster.open.set()
        begun = await running
        assert await read(reads, cluster, name=kept.name) is not kept
        assert await read(reads, cluster, kind="MPIJob", name=begun.name) is not begun
        assert await read(reads, cluster, "ben", name=other.name) is other

    checked(body)


def test_a_read_ends_when_nobody_waits_and_its_error_is_told_to_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def body(cluster: Cluster, reads: JobReads) -> None:
        cluster.open.clear()
        for task in (one := read(reads, cluster), read(reads, cluster)):
            await asyncio.sleep(0.01)
            task.cancel()
        await asyncio.wait({one, task})
        await asyncio.sleep(0.01)
        assert cluster.broken_off == cluster.reads == 1, "the second one had not begun"
        cluster.open.set()
        assert len((await read(reads, cluster)).jobs) == 1

        async def fails() -> Found:
            await asyncio.sleep(0.01)
            raise LookupError

        mine = CallerReads(reads, "anna", "")
        asked = [mine.read("b", "", fails) for _ in range(3)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(one) for one in found] == [LookupError] * 3

    checked(body)


def test_reads_are_forgotten_after_a_while_and_where_they_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_reads, "MOST_KEPT", 3)
    monkeypatch.setattr(job_reads, "LEAST", 1)
    monkeypatch.setattr(job_reads, "KEPT_SECONDS", 0.05)

    async def body(cluster: Cluster, reads: JobReads) -> None:
        names = {who: (await read(reads, cluster, who)).name for who in "abcd"}
        before = cluster.reads
        for who in "bcd":
            await read(reads, cluster, who, names[who])
        assert cluster.reads == before
        await read(reads, cluster, "a", names["a"])
        assert cluster.reads == before + 1, "the oldest went"
        await asyncio.sleep(0.2)
        await read(reads, cluster, "d", names["d"])
        assert cluster.reads == before + 2

    checked(body)


class Jobs(list[JobSummary]):
    """A list of which one can tell when it is gone."""


def test_a_read_that_is_dropped_is_held_no_longer() -> None:
    """Or a list that is asked for again and again is in memory a thousand times."""

    async def body(cluster: Cluster, reads: JobReads) -> None:
        seen: list[weakref.ref[Jobs]] = []

        async def work() -> Found:
            found = Jobs(cluster.jobs)
            seen.append(weakref.ref(found))
            return found, ()

        for _ in range(20):
            await CallerReads(reads, "anna", "").read("a", "", work)
        gc.collect()
        assert sum(one() is not None for one in seen) <= 1
        reads.forget("anna")
        await asyncio.sleep(0)
        gc.collect()
        assert not any(one() for one in seen)

    checked(body)


def test_lists_that_are_empty_take_room_too() -> None:
    async def body(cluster: Cluster, reads: JobReads) -> None:
        cluster.jobs = []
        mine = CallerReads(reads, "anna", "")
        found = [await mine.read("a", f"l={n}", cluster.list) for n in range(1100)]
        again = [await mine.read("a", f"l={n}", cluster.list, one.name)
                 for n, one in [*enumerate(found)][:50]]  # fmt: skip
        assert all(one is not old for one, old in zip(again, found, strict=False))

    checked(body)


def test_whoever_keeps_most_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_reads, "MOST_KEPT", 10)
    monkeypatch.setattr(job_reads, "LEAST", 1)

    async def body(cluster: Cluster, reads: JobReads) -> None:
        kept = await read(reads, cluster, "ben")
        greedy = Cluster(4)
        for kind in ("", "MPIJob", "TrainJob"):
            await read(reads, greedy, "anna", kind=kind)
        await read(reads, Cluster(11), "carl")
        assert await read(reads, cluster, "ben", kept.name) is kept

    checked(body)


def test_a_list_that_is_refused_has_no_further_pages() -> None:
    async def body(cluster: Cluster, reads: JobReads) -> None:
        kept = await read(reads, cluster)

        async def refused() -> Found:
            raise PermissionError

        mine = CallerReads(reads, "anna", "")
        for name in ("", kept.name):
            with pytest.raises(PermissionError):
                await mine.read("a", "", refused, name)

    checked(body)


def test_a_long_list_is_cut_beside_the_event_loop_once_at_a_time_for_one_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_reads, "LONG", 2)

    async def body(cluster: Cluster, reads: JobReads) -> None:
        both = threading.Barrier(2)
        running: list[str] = []

        def work(caller: str) -> bool:
            assert caller not in running
            running.append(caller)
            try:
                both.wait(5)  # of two callers at once
            finally:
                running.remove(caller)
            return threading.current_thread() is threading.main_thread()

        long = await read(reads, Cluster(2))
        asked = [
            asyncio.ensure_future(CallerReads(reads, who, "").cut(long, partial(work, who)))
            for who in ("anna", "ben") * 3
        ]
        assert await asyncio.gather(*asked) == [False] * 6
        short = await read(reads, Cluster(1))
        mine = CallerReads(reads, "anna", "")
        assert await mine.cut(short, threading.current_thread) is threading.main_thread()

    checked(body)


def test_a_cut_that_nobody_waits_for_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_reads, "LONG", 1)

    async def body(cluster: Cluster, reads: JobReads) -> None:
        go_on = threading.Event()
        mine, long = CallerReads(reads, "anna", ""), await read(reads, cluster)
        first = asyncio.ensure_future(mine.cut(long, lambda: go_on.wait(5)))
        await asyncio.sleep(0.01)
        first.cancel()
        second = asyncio.ensure_future(mine.cut(long, go_on.is_set))
        await asyncio.sleep(0.01)
        assert not second.done()
        go_on.set()
        assert await second

    checked(body)


def test_pages_of_a_long_list_are_made_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_reads, "LONG", 2)
    made, where = paging.page, []

    def page(*given: Any) -> paging.Page:
        where.append(threading.current_thread())
        return made(*given)

    monkeypatch.setattr(paging, "page", page)

    class Backend(Cluster):
        async def list(self, *asked: object) -> Any:
            return self.jobs

    async def body(cluster: Cluster, reads: JobReads) -> None:
        backend: Any = Backend(2)
        await list_jobs(Call(backend, query=ListQuery(), now=NOW))
        assert threading.main_thread() not in where and len(where) == 1

    checked(body)
