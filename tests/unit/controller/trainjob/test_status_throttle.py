"""When the new status of a TrainJob is written, and what of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.trainjob import (
    ReplicatedJobStatus,
    TrainJob,
    TrainJobCondition,
    TrainJobStatus,
)
from mpi_trainer.controller.trainjob import status_throttle
from mpi_trainer.controller.trainjob.reconcile import _dated
from mpi_trainer.controller.trainjob.status_throttle import (
    ACTIVITY,
    COUNTS,
    FIRST_COUNTS,
    NEW_JOB,
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
    status=TrainJobStatus(jobs_status=(ReplicatedJobStatus("node", active=1),)),
)
READY = (ReplicatedJobStatus("node", active=1, ready=1),)
COUNTED = TrainJobDecision(replace(JOB.status, jobs_status=READY), StatusAnnotations())
RUNS = replace(
    COUNTED,
    annotations=StatusAnnotations(phase="Running", start_time="2026-11-16T00:00:00Z"),
    events=(DecidedEvent("Normal", "Running", "TrainJob is running"),),
)


BEFORE = NOW - NEW_JOB.pause
"""when a job was first seen that is not new any more"""


@pytest.fixture
def throttle() -> StatusThrottle:
    made = StatusThrottle()
    made.written(COUNTED, NOW)
    return made


def test_a_change_of_counts_alone_waits_for_the_rest_of_the_moment(
    throttle: StatusThrottle,
) -> None:
    """CTL-13."""
    assert throttle.due(JOB, COUNTED, BEFORE, SOON, QUIET) == Due(None, COUNTS.pause - HALF)
    assert throttle.due(JOB, COUNTED, BEFORE, SOON, BUSY) == Due(
        None, COUNTS.pause + 3 * BUSY - HALF
    )


def test_it_waits_no_longer_than_that(throttle: StatusThrottle) -> None:
    assert throttle.due(JOB, COUNTED, BEFORE, NOW + COUNTS.pause, QUIET) == Due(COUNTED)
    assert throttle.due(JOB, COUNTED, BEFORE, NOW, VERY) == Due(None, COUNTS.longest)
    assert throttle.due(JOB, COUNTED, BEFORE, NOW + COUNTS.longest, VERY) == Due(COUNTED)
    assert throttle.due(JOB, RUNS, BEFORE, NOW, VERY) == Due(None, status_throttle.RUNS.longest)
    assert throttle.due(JOB, RUNS, BEFORE, NOW + status_throttle.RUNS.longest, VERY) == Due(RUNS)


def test_a_new_job_is_left_alone_unless_it_ends() -> None:
    """A client may change what it has just created (U-3)."""
    throttle, job = StatusThrottle(), replace(JOB, status=TrainJobStatus())
    held = TrainJobDecision(
        TrainJobStatus(conditions=(TrainJobCondition("Suspended", "True"),)),
        StatusAnnotations(),
        make=True,
    )
    ended = TrainJobDecision(
        TrainJobStatus(conditions=(TrainJobCondition("Failed", "True"),)), StatusAnnotations()
    )
    bare = TrainJobDecision(job.status, StatusAnnotations(), make=True)
    assert throttle.due(job, held, NOW, NOW, QUIET) == Due(None, NEW_JOB.pause)
    assert throttle.due(job, bare, NOW, NOW, QUIET) == Due(bare)
    assert throttle.due(job, ended, NOW, NOW, QUIET) == Due(ended)
    assert throttle.due(job, held, NOW, NOW + NEW_JOB.pause, QUIET) == Due(held)


def test_the_first_active_job_is_told_at_once() -> None:
    """U-2: clients wait for it, and a short job has no second look."""
    throttle, job = StatusThrottle(), replace(JOB, status=TrainJobStatus())
    active = replace(COUNTED, status=JOB.status)
    assert throttle.due(job, active, BEFORE, NOW, QUIET) == Due(active)


def test_the_first_counts_of_jobs_that_wait_are_told_with_the_first_that_is_active() -> None:
    throttle, job = StatusThrottle(), replace(JOB, status=TrainJobStatus())
    waiting = replace(COUNTED, status=TrainJobStatus(jobs_status=(ReplicatedJobStatus("node"),)))
    assert throttle.due(job, waiting, BEFORE, NOW, QUIET) == Due(None, FIRST_COUNTS.pause)
    assert throttle.due(job, waiting, BEFORE, SOON, QUIET) == Due(None, FIRST_COUNTS.pause - HALF)


def test_beside_many_writes_the_first_active_is_one_write_of_counts_within_a_second() -> None:
    """U-2: that it runs is told with its end, should that come soon."""
    throttle, job = StatusThrottle(), replace(JOB, status=TrainJobStatus())
    counts = replace(RUNS, annotations=StatusAnnotations(), events=())
    assert throttle.due(job, RUNS, BEFORE, NOW, BUSY) == Due(None, ACTIVITY.longest)
    later = NOW + ACTIVITY.longest
    assert throttle.due(job, RUNS, BEFORE, later, BUSY) == Due(counts, 3 * BUSY - ACTIVITY.longest)
    throttle.written(counts, later)
    stored = replace(job, status=counts.status)
    assert throttle.due(stored, RUNS, BEFORE, later, BUSY) == Due(None, 3 * BUSY - ACTIVITY.longest)
    assert throttle.due(stored, RUNS, BEFORE, NOW + 3 * BUSY, BUSY) == Due(RUNS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            ReplicatedJobStatus("node", suspended=1),
            ReplicatedJobStatus("node", active=1),
            id="it-is-resumed",
        ),
        pytest.param(
            ReplicatedJobStatus("node", active=1, suspended=1),
            ReplicatedJobStatus("node", active=1),
            id="is-going-on",
        ),
        pytest.param(
            ReplicatedJobStatus("node", active=1, suspended=1),
            ReplicatedJobStatus("node", suspended=1),
            id="is-idle",
        ),
    ],
)
def test_what_a_suspension_waits_for_is_told_at_once(
    throttle: StatusThrottle, old: ReplicatedJobStatus, new: ReplicatedJobStatus
) -> None:
    """U-8; Kueue gives a job's quota to others once nothing of it is active."""
    job = replace(JOB, status=TrainJobStatus(jobs_status=(old,)))
    step = replace(COUNTED, status=TrainJobStatus(jobs_status=(new,)))
    assert throttle.due(job, step, BEFORE, SOON, QUIET) == Due(step)


def test_that_a_job_runs_is_told_at_once_unless_there_is_much_to_write(
    throttle: StatusThrottle,
) -> None:
    assert throttle.due(JOB, RUNS, BEFORE, NOW, QUIET) == Due(RUNS)
    throttle.written(RUNS, NOW)
    assert throttle.due(JOB, RUNS, BEFORE, SOON, BUSY) == Due(None, 3 * BUSY)
    assert throttle.due(JOB, RUNS, BEFORE, SOON + HALF, BUSY) == Due(None, 3 * BUSY - HALF)
    assert throttle.due(JOB, RUNS, BEFORE, SOON + 3 * BUSY, BUSY) == Due(RUNS)


def test_a_clock_that_was_set_back_holds_nothing_up(throttle: StatusThrottle) -> None:
    assert throttle.due(JOB, COUNTED, BEFORE, NOW - timedelta(hours=1), QUIET) == Due(COUNTED)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(replace(COUNTED, make=True), id="an-act"),
        pytest.param(
            replace(COUNTED, annotations=StatusAnnotations(cause="no room")), id="an-annotation"
        ),
        pytest.param(replace(COUNTED, events=RUNS.events), id="an-event"),
        pytest.param(
            replace(RUNS, annotations=replace(RUNS.annotations, placement="{}")),
            id="more-than-it-runs",
        ),
        pytest.param(
            replace(
                RUNS,
                status=replace(RUNS.status, conditions=(TrainJobCondition("Complete", "True"),)),
            ),
            id="a-condition",
        ),
        pytest.param(TrainJobDecision(JOB.status, StatusAnnotations()), id="nothing"),
    ],
)
def test_whatever_else_there_is_to_do_is_done_now(
    throttle: StatusThrottle, step: TrainJobDecision
) -> None:
    assert throttle.due(JOB, step, BEFORE, SOON, VERY) == Due(step)


def test_a_jobset_is_dated_by_its_last_change() -> None:
    plain = ObservedJobSet("set")
    assert _dated(None, None, NOW) is None
    first = _dated(plain, None, NOW)
    assert first == replace(plain, since=NOW)
    assert _dated(plain, first, SOON) == replace(plain, since=NOW)
    counted = replace(plain, jobs=READY)
    assert _dated(counted, first, SOON) == replace(counted, since=SOON)
