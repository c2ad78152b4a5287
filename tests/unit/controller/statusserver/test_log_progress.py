"""Progress out of a job's log, for jobs whose program tells nobody else."""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from mpi_trainer.api.kinds.annotations import PHASE, TRACKING
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.trainjob import TrainerStatus, TrainJob, TrainJobStatus
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.objects import Pod
from mpi_trainer.controller.statusserver import log_progress as reports_reading
from mpi_trainer.controller.statusserver.log_progress import (
    LogProgress,
    _says_more,
    interval,
    read,
    reported,
)
from mpi_trainer.controller.statusserver.report import Report
from mpi_trainer.runtime.partial import Key

T0 = datetime(2026, 11, 17, 12, tzinfo=UTC)


def told(text: str, speed: deque[tuple[datetime, float]], seconds: float) -> Report | None:
    progress = read(text.splitlines())
    assert progress is not None
    return reported(progress, speed, T0 + timedelta(seconds=seconds))


def test_progress_metrics_and_the_time_left_come_from_the_log() -> None:
    speed: deque[tuple[datetime, float]] = deque()
    first = told("[1,0]<stdout>:epoch 1/10 loss=0.5\n", speed, 0)
    assert first is not None
    assert (first.progress_percentage, first.estimated_remaining_seconds) == (10, None)
    assert [(one.name, one.value) for one in first.metrics] == [("loss", "0.5")]
    later = told("[1,0]<stdout>:epoch 1/10 loss=0.5\n[1,0]<stdout>:epoch 5/10\n", speed, 40)
    assert later is not None
    assert (later.progress_percentage, later.estimated_remaining_seconds) == (50, 50)
    done = told("epoch 10/10", speed, 90)
    assert done is not None
    assert (done.progress_percentage, done.estimated_remaining_seconds) == (100, 0)


def test_a_log_that_says_nothing_of_it_reports_nothing() -> None:
    assert read(["hello", "[0] world"]) is None


def test_what_the_program_reports_itself_is_left_alone() -> None:
    mine = Report(T0, 10)
    bare = TrainJob()
    theirs = TrainerStatus(progress_percentage=12, last_updated_time=T0 + timedelta(seconds=1))
    reports = replace(bare, status=TrainJobStatus(trainer_status=theirs))
    stored = TrainerStatus(progress_percentage=10, last_updated_time=T0)
    ours = replace(bare, status=TrainJobStatus(trainer_status=stored))
    new = Report(T0 + timedelta(seconds=30), 20)
    assert _says_more(new, None, bare)
    assert not _says_more(new, mine, reports)
    assert _says_more(new, mine, ours)
    assert not _says_more(replace(mine, last_updated_time=T0 + timedelta(seconds=30)), mine, ours)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", 30), ("45s", 45), ("60", 60), ("1m", 60), ("1", 5), ("9999", 300), ("soon", 30)],
)
def test_how_often_is_openshift_ai_s_word_within_bounds(text: str, seconds: int) -> None:
    assert interval(text) == timedelta(seconds=seconds)


class Cluster:
    """A pod with a log; stands in for the API server, the kubelet and owner references alike, which
    no API server without nodes has."""

    def __init__(self, log: str) -> None:
        self.log = log
        self.reads = 0
        self.told: list[Report] = []

    async def end(self, _: object, __: str) -> str:
        self.reads += 1
        return self.log

    async def owned(self, *_: object) -> tuple[Pod, ...]:
        return (msgspec.convert({"metadata": {}, "status": {"phase": "Running"}}, Pod),)

    async def write(self, _: object, __: str, report: Report) -> None:
        self.told.append(report)


def tracked(option: str, phase: str = "Running") -> TrainJob:
    notes = {TRACKING: option, PHASE: phase}
    return TrainJob(metadata=ObjectMeta(name="pi", namespace="team", uid="u", annotations=notes))


def seen_by(cluster: Cluster, job: TrainJob, *seconds: float) -> list[float | None]:
    """What each look at these times says of the next."""
    memories = JobMemories()
    memories.begin(Key("team", "pi"), "u")
    double: Any = cluster
    reading = LogProgress(double, double, double, memories, double)
    trainer: Any = SimpleNamespace(jobs=(SimpleNamespace(ancestor="trainer", name="node"),))

    async def looks() -> list[float | None]:
        return [
            await reading.store_due(job, trainer, "set", T0 + timedelta(seconds=s)) for s in seconds
        ]

    return asyncio.run(looks())


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def page(*_: object, **__: object) -> Any:
        return SimpleNamespace(items=())

    monkeypatch.setattr(reports_reading, "listed", page)


@pytest.mark.usefixtures("listed")
def test_a_log_is_read_where_that_is_wanted_and_no_more_often_than_that() -> None:
    cluster = Cluster("epoch 3/10\n")
    assert seen_by(cluster, tracked("true"), 0, 10, 30) == [30.0, 20.0, 30.0]
    assert cluster.reads == 2
    assert [one.progress_percentage for one in cluster.told] == [30]
    for job in (tracked("no"), tracked("true", "Pending")):
        quiet = Cluster("epoch 3/10\n")
        assert seen_by(quiet, job, 0) == [None]
        assert not quiet.reads
