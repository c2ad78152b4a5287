"""Lists out of a caller's own stream: their own alone, open, and not just after their change."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from mpi_trainer.sdk.backends.backend import JobSummary, Key
from mpi_trainer.server import told_lists
from mpi_trainer.server.everywhere import Found
from mpi_trainer.server.job_reads import CallerReads, JobReads

JOB = JobSummary(Key("a", "told"), "Running", datetime(2026, 1, 1, tzinfo=UTC))
OWN = JobSummary(Key("a", "read"), "Running", datetime(2026, 1, 1, tzinfo=UTC))


async def told(kind: str) -> Sequence[JobSummary] | None:
    return None if kind == "Unknown" else (JOB,)


async def work() -> Found:
    return (OWN,), ()


async def name(
    reads: JobReads, caller: str = "anna", kind: str = "", space: str = "a", labels: str = ""
) -> str:
    found = await CallerReads(reads, caller, kind).read(space, labels, work)
    return found.jobs[0].key.name


def test_an_open_stream_serves_its_own_caller_and_the_same_list_alone() -> None:
    async def body() -> None:
        reads = JobReads()
        assert await name(reads) == "read"
        with reads.told.open("anna", "a", told):
            assert await name(reads) == "told"
            assert await name(reads, caller="ben") == "read", "another's stream"
            assert await name(reads, space="b") == "read", "another namespace"
            assert await name(reads, space="") == "read", "all namespaces"
            assert await name(reads, kind="Unknown") == "read", "the stream cannot say"
            assert await name(reads, labels="x=y") == "read", "a stream knows no labels"
        assert await name(reads) == "read", "the stream is closed"

    asyncio.run(body())


def test_after_a_change_of_the_callers_own_the_list_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(told_lists, "SETTLED", 0.05)

    async def body() -> None:
        reads = JobReads()
        with reads.told.open("anna", "a", told), reads.told.open("ben", "a", told):
            reads.forget("anna")
            assert await name(reads) == "read"
            assert await name(reads, caller="ben") == "told"
            await asyncio.sleep(0.06)
            assert await name(reads) == "told"

    asyncio.run(body())
