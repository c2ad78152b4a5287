"""A check tells what it found, whatever becomes of its job's removal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.check.report import CheckReport
from mpi_trainer.sdk.backends.backend import Key, LogQuery
from mpi_trainer.sdk.job import check
from tests.unit.api.building import job


class Forbidden(Exception):
    pass


class Cluster:
    """Where jobs may not be removed, and perhaps not be created."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self.refusal = refusal
        self.asked: list[Key] = []

    async def enforces_restricted(self, namespace: str) -> bool:
        return False

    async def create(self, made: Any) -> None:
        if self.refusal is not None:
            raise self.refusal

    async def details(self, key: Key) -> SimpleNamespace:
        return SimpleNamespace(waits_for="", pods=())

    async def logs(self, key: Key, query: LogQuery) -> AsyncIterator[SimpleNamespace]:
        yield SimpleNamespace(text="mpi-trainer-check start 0")

    async def delete(self, key: Key) -> None:
        self.asked.append(key)
        raise Forbidden("you may not delete mpijobs")


def checked(cluster: Cluster) -> CheckReport:
    target = check.Target(decode(MPIJob, job()).value)
    return asyncio.run(check.check(cluster, target, "ns", timeout=1))  # type: ignore[arg-type]


def test_why_no_job_was_created_is_told_and_not_that_it_cannot_be_removed() -> None:
    cluster = Cluster(ValueError("over quota"))
    with pytest.raises(ValueError, match="over quota"):
        checked(cluster)
    assert len(cluster.asked) == 1, "an answer may have been lost"


def test_what_was_found_is_told_where_the_job_cannot_be_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ended(*_: object) -> SimpleNamespace:
        return SimpleNamespace(state="Succeeded")

    monkeypatch.setattr(check, "until_finished", ended)
    report = checked(Cluster())
    assert report.steps
    assert "was not removed (you may not delete mpijobs)" in report.warnings[-1]


def test_a_job_whose_pods_do_not_end_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a server it is a test of all that go on at once, and its caller may be gone."""

    class Slow(Cluster):
        async def delete(self, key: Key) -> None:
            await asyncio.sleep(60)

    async def ended(*_: object) -> SimpleNamespace:
        return SimpleNamespace(state="Succeeded")

    monkeypatch.setattr(check, "until_finished", ended)
    monkeypatch.setattr(check, "_REMOVAL", 0.01)
    assert "is being removed: its pods take longer" in checked(Slow()).warnings[-1]
