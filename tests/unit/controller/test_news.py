"""What a TrainJob has to tell is written with what else changes, or a moment later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from mpi_trainer.api.meta import ObjectMeta
from mpi_trainer.api.trainjob import Condition, JobStatus, TrainJob, TrainJobStatus
from mpi_trainer.controller.train.news import (
    COUNTS_EVERY,
    COUNTS_WITHIN,
    FIRST_COUNTS,
    RUNS_WITHIN,
    News,
)
from mpi_trainer.decide.decision import Event
from mpi_trainer.decide.findings import Findings
from mpi_trainer.decide.trainseen import JobSetSeen, Step

NOW = datetime(2026, 11, 16, tzinfo=UTC)
HALF = timedelta(seconds=0.5)
SOON = NOW + HALF
QUIET, BUSY, VERY = timedelta(), timedelta(seconds=3), timedelta(hours=1)
JOB = TrainJob(
    metadata=ObjectMeta(name="a", namespace="b", uid="u"),
    status=TrainJobStatus(jobs_status=(JobStatus("node", active=1),)),
)
READY = (JobStatus("node", active=1, ready=1),)
COUNTED = Step(replace(JOB.status, jobs_status=READY), Findings())
RUNS = replace(
    COUNTED,
    findings=Findings(phase="Running", start_time="2026-11-16T00:00:00Z"),
    events=(Event("Normal", "Running", "TrainJob is running"),),
)


@pytest.fixture
def news() -> News:
    made = News()
    made.told(NOW)
    return made


def test_a_change_of_counts_alone_waits_for_the_rest_of_the_moment(news: News) -> None:
    """CTL-13."""
    assert news.can_wait(JOB, COUNTED, SOON, QUIET) == COUNTS_EVERY - HALF
    assert news.can_wait(JOB, COUNTED, SOON, BUSY) == COUNTS_EVERY + 3 * BUSY - HALF


def test_it_waits_no_longer_than_that(news: News) -> None:
    assert news.can_wait(JOB, COUNTED, NOW + COUNTS_EVERY, QUIET) is None
    assert news.can_wait(JOB, COUNTED, NOW, VERY) == COUNTS_WITHIN
    assert news.can_wait(JOB, COUNTED, NOW + COUNTS_WITHIN, VERY) is None
    assert news.can_wait(JOB, RUNS, NOW, VERY) == RUNS_WITHIN
    assert news.can_wait(JOB, RUNS, NOW + RUNS_WITHIN, VERY) is None


def test_the_first_counts_wait_for_the_job_to_run() -> None:
    news, job = News(), replace(JOB, status=TrainJobStatus())
    assert news.can_wait(job, COUNTED, NOW, QUIET) == FIRST_COUNTS
    assert news.can_wait(job, COUNTED, SOON, QUIET) == FIRST_COUNTS - HALF
    assert news.can_wait(job, RUNS, SOON, QUIET) is None


def test_that_a_job_runs_is_told_at_once_unless_there_is_much_to_write(news: News) -> None:
    assert news.can_wait(JOB, RUNS, NOW, QUIET) is None
    news.told(NOW)
    assert news.can_wait(JOB, RUNS, SOON, BUSY) == 3 * BUSY
    assert news.can_wait(JOB, RUNS, SOON + HALF, BUSY) == 3 * BUSY - HALF
    assert news.can_wait(JOB, RUNS, SOON + 3 * BUSY, BUSY) is None


def test_a_clock_that_was_set_back_holds_nothing_up(news: News) -> None:
    assert news.can_wait(JOB, COUNTED, NOW - timedelta(hours=1), QUIET) is None


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(replace(COUNTED, make=True), id="an-act"),
        pytest.param(replace(COUNTED, findings=Findings(cause="no room")), id="a-finding"),
        pytest.param(replace(COUNTED, events=RUNS.events), id="an-event"),
        pytest.param(
            replace(RUNS, findings=replace(RUNS.findings, placement="{}")), id="more-than-it-runs"
        ),
        pytest.param(
            replace(RUNS, status=replace(RUNS.status, conditions=(Condition("Complete", "True"),))),
            id="a-condition",
        ),
        pytest.param(Step(JOB.status, Findings()), id="nothing"),
    ],
)
def test_whatever_else_there_is_to_do_is_done_now(news: News, step: Step) -> None:
    assert news.can_wait(JOB, step, SOON, VERY) is None


def test_a_jobset_is_dated_by_its_last_change() -> None:
    news, plain = News(), JobSetSeen("set")
    assert news.dated(None, NOW) is None
    assert news.dated(plain, NOW) == replace(plain, since=NOW)
    assert news.dated(plain, SOON) == replace(plain, since=NOW)
    counted = replace(plain, jobs=READY)
    assert news.dated(counted, SOON) == replace(counted, since=SOON)
