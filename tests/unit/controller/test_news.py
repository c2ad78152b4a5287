"""What a TrainJob has to tell is written with what else changes, or a moment later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.trainjob import Condition, JobStatus, TrainJob, TrainJobStatus
from mpi_trainer.controller.trainjob.status_throttle import (
    COUNTS_EVERY,
    COUNTS_WITHIN,
    FIRST_COUNTS,
    NEW,
    RUNS_WITHIN,
    TURNS_WITHIN,
    Due,
    StatusThrottle,
)
from mpi_trainer.decide.reasons import DecidedEvent
from mpi_trainer.decide.trainjob.decision import TrainJobDecision
from mpi_trainer.decide.trainjob.observed import ObservedJobSet
from mpi_trainer.decide.trainjob.status_annotations import StatusAnnotations

NOW = datetime(2026, 11, 16, tzinfo=UTC)
HALF = timedelta(seconds=0.5)
SOON = NOW + HALF
QUIET, BUSY, VERY = timedelta(), timedelta(seconds=3), timedelta(hours=1)
JOB = TrainJob(
    metadata=ObjectMeta(name="a", namespace="b", uid="u"),
    status=TrainJobStatus(jobs_status=(JobStatus("node", active=1),)),
)
READY = (JobStatus("node", active=1, ready=1),)
COUNTED = TrainJobDecision(replace(JOB.status, jobs_status=READY), StatusAnnotations())
RUNS = replace(
    COUNTED,
    annotations=StatusAnnotations(phase="Running", start_time="2026-11-16T00:00:00Z"),
    events=(DecidedEvent("Normal", "Running", "TrainJob is running"),),
)


def met(now: datetime = NOW) -> StatusThrottle:
    """Of a job that has been there for a while."""
    made = StatusThrottle()
    made.dated(None, now - NEW)
    return made


@pytest.fixture
def news() -> StatusThrottle:
    made = met()
    made.told(COUNTED, NOW)
    return made


def test_a_change_of_counts_alone_waits_for_the_rest_of_the_moment(news: StatusThrottle) -> None:
    """CTL-13."""
    assert news.due(JOB, COUNTED, SOON, QUIET) == Due(None, COUNTS_EVERY - HALF)
    assert news.due(JOB, COUNTED, SOON, BUSY) == Due(None, COUNTS_EVERY + 3 * BUSY - HALF)


def test_it_waits_no_longer_than_that(news: StatusThrottle) -> None:
    assert news.due(JOB, COUNTED, NOW + COUNTS_EVERY, QUIET) == Due(COUNTED)
    assert news.due(JOB, COUNTED, NOW, VERY) == Due(None, COUNTS_WITHIN)
    assert news.due(JOB, COUNTED, NOW + COUNTS_WITHIN, VERY) == Due(COUNTED)
    assert news.due(JOB, RUNS, NOW, VERY) == Due(None, RUNS_WITHIN)
    assert news.due(JOB, RUNS, NOW + RUNS_WITHIN, VERY) == Due(RUNS)


def test_a_new_job_is_left_alone_unless_it_ends() -> None:
    """A client may change what it has just created (U-3)."""
    news, job = StatusThrottle(), replace(JOB, status=TrainJobStatus())
    held = TrainJobDecision(
        TrainJobStatus(conditions=(Condition("Suspended", "True"),)), StatusAnnotations(), make=True
    )
    ended = TrainJobDecision(
        TrainJobStatus(conditions=(Condition("Failed", "True"),)), StatusAnnotations()
    )
    bare = TrainJobDecision(job.status, StatusAnnotations(), make=True)
    news.dated(None, NOW)
    assert news.due(job, held, NOW, QUIET) == Due(None, NEW)
    assert news.due(job, bare, NOW, QUIET) == Due(bare)
    assert news.due(job, ended, NOW, QUIET) == Due(ended)
    assert news.due(job, held, NOW + NEW, QUIET) == Due(held)


def test_the_first_active_job_is_told_at_once() -> None:
    """U-2: clients wait for it, and a short job has no second look."""
    news, job = met(), replace(JOB, status=TrainJobStatus())
    active = replace(COUNTED, status=JOB.status)
    assert news.due(job, active, NOW, QUIET) == Due(active)


def test_the_first_counts_of_jobs_that_wait_are_told_with_the_first_that_is_active() -> None:
    news, job = met(), replace(JOB, status=TrainJobStatus())
    waiting = replace(COUNTED, status=TrainJobStatus(jobs_status=(JobStatus("node"),)))
    assert news.due(job, waiting, NOW, QUIET) == Due(None, FIRST_COUNTS)
    assert news.due(job, waiting, SOON, QUIET) == Due(None, FIRST_COUNTS - HALF)


def test_beside_many_writes_the_first_active_is_one_write_of_counts_within_a_second() -> None:
    """U-2: that it runs is told with its end, should that come soon."""
    news, job = met(), replace(JOB, status=TrainJobStatus())
    counts = replace(RUNS, annotations=StatusAnnotations(), events=())
    assert news.due(job, RUNS, NOW, BUSY) == Due(None, TURNS_WITHIN)
    later = NOW + TURNS_WITHIN
    assert news.due(job, RUNS, later, BUSY) == Due(counts, 3 * BUSY - TURNS_WITHIN)
    news.told(counts, later)
    stored = replace(job, status=counts.status)
    assert news.due(stored, RUNS, later, BUSY) == Due(None, 3 * BUSY - TURNS_WITHIN)
    assert news.due(stored, RUNS, NOW + 3 * BUSY, BUSY) == Due(RUNS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            JobStatus("node", suspended=1), JobStatus("node", active=1), id="it-is-resumed"
        ),
        pytest.param(
            JobStatus("node", active=1, suspended=1), JobStatus("node", active=1), id="is-going-on"
        ),
        pytest.param(
            JobStatus("node", active=1, suspended=1), JobStatus("node", suspended=1), id="is-idle"
        ),
    ],
)
def test_what_a_suspension_waits_for_is_told_at_once(
    news: StatusThrottle, old: JobStatus, new: JobStatus
) -> None:
    """U-8; Kueue gives a job's quota to others once nothing of it is active."""
    job = replace(JOB, status=TrainJobStatus(jobs_status=(old,)))
    step = replace(COUNTED, status=TrainJobStatus(jobs_status=(new,)))
    assert news.due(job, step, SOON, QUIET) == Due(step)


def test_that_a_job_runs_is_told_at_once_unless_there_is_much_to_write(
    news: StatusThrottle,
) -> None:
    assert news.due(JOB, RUNS, NOW, QUIET) == Due(RUNS)
    news.told(RUNS, NOW)
    assert news.due(JOB, RUNS, SOON, BUSY) == Due(None, 3 * BUSY)
    assert news.due(JOB, RUNS, SOON + HALF, BUSY) == Due(None, 3 * BUSY - HALF)
    assert news.due(JOB, RUNS, SOON + 3 * BUSY, BUSY) == Due(RUNS)


def test_a_clock_that_was_set_back_holds_nothing_up(news: StatusThrottle) -> None:
    assert news.due(JOB, COUNTED, NOW - timedelta(hours=1), QUIET) == Due(COUNTED)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(replace(COUNTED, make=True), id="an-act"),
        pytest.param(
            replace(COUNTED, annotations=StatusAnnotations(cause="no room")), id="a-finding"
        ),
        pytest.param(replace(COUNTED, events=RUNS.events), id="an-event"),
        pytest.param(
            replace(RUNS, annotations=replace(RUNS.annotations, placement="{}")),
            id="more-than-it-runs",
        ),
        pytest.param(
            replace(RUNS, status=replace(RUNS.status, conditions=(Condition("Complete", "True"),))),
            id="a-condition",
        ),
        pytest.param(TrainJobDecision(JOB.status, StatusAnnotations()), id="nothing"),
    ],
)
def test_whatever_else_there_is_to_do_is_done_now(
    news: StatusThrottle, step: TrainJobDecision
) -> None:
    assert news.due(JOB, step, SOON, VERY) == Due(step)


def test_a_jobset_is_dated_by_its_last_change() -> None:
    news, plain = StatusThrottle(), ObservedJobSet("set")
    assert news.dated(None, NOW) is None
    assert news.dated(plain, NOW) == replace(plain, since=NOW)
    assert news.dated(plain, SOON) == replace(plain, since=NOW)
    counted = replace(plain, jobs=READY)
    assert news.dated(counted, SOON) == replace(counted, since=SOON)
