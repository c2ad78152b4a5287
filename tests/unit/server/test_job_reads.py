"""Reads of lists: one caller's calls share them, further pages are cut from them, nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from mpi_trainer.sdk.backends.backend import JobSummary, Key
from mpi_trainer.server import job_reads
from mpi_trainer.server.everywhere import Found
from mpi_trainer.server.job_reads import CallerReads, JobReads, Read

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
