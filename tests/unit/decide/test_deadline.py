"""activeDeadlineSeconds counts from the start of the job, over all attempts (CTL-2)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.decide import reasons
from mpi_trainer.decide.mpijob.decide import decide
from tests.unit.decide.mpijob.jobs import (
    T0,
    at,
    condition,
    event_reasons,
    failed_once,
    launcher,
    make_job,
    observe,
    running_job,
    stored,
    truth,
    with_policy,
    worker,
)


@pytest.mark.parametrize(("passed", "over"), [(0, False), (9.9, False), (10, True), (1e6, True)])
def test_job_fails_at_its_deadline(passed: float, over: bool) -> None:
    job, observed = running_job(active_deadline_seconds=10)
    decision = decide(job, observed, at(passed))
    assert c.finished(decision.status.conditions) is over
    if over:
        assert condition(decision.status, c.FAILED).reason == reasons.DEADLINE
        assert event_reasons(decision) == [reasons.DEADLINE]
        assert truth(decision.status)[c.RUNNING] == c.FALSE
    else:
        assert decision.requeue_after == timedelta(seconds=10 - passed)


def test_deadline_holds_though_no_worker_ever_came() -> None:
    job = make_job(active_deadline_seconds=10, launcher_creation_policy="WaitForWorkersReady")
    job = stored(job, decide(job, observe(), T0))
    observed = observe(worker(0, "Pending"), worker(1, "Pending"))
    assert c.holds(decide(job, observed, at(10)).status.conditions, c.FAILED)


def test_deadline_spans_attempts() -> None:
    job, record = failed_once(active_deadline_seconds=10)
    observed = observe(worker(0), worker(1), record=record)
    assert decide(job, observed, at(0.5)).requeue_after == timedelta(seconds=0.5)
    over = decide(job, observed, at(10))
    assert condition(over.status, c.FAILED).reason == reasons.DEADLINE
    assert [f.reason for f in over.record.failures] == [
        reasons.LAUNCHER_FAILED,
        reasons.DEADLINE,
    ]
    assert over.record.retry_at is None


def test_suspension_starts_the_clock_anew() -> None:
    job, observed = running_job(active_deadline_seconds=10)
    paused = decide(with_policy(job, suspend=True), observed, at(9))
    job = stored(job, paused)
    back = decide(job, observe(record=paused.record), at(100))
    assert not c.finished(back.status.conditions)
    assert back.status.start_time == at(100)
    assert back.requeue_after == timedelta(seconds=10)


def test_a_success_seen_late_is_still_a_success() -> None:
    """CTL-3: a controller that was away does not fail the jobs that ended meanwhile."""
    job, _ = running_job(active_deadline_seconds=10)
    decision = decide(job, observe(launcher("Succeeded"), worker(0), worker(1)), at(3600))
    assert c.holds(decision.status.conditions, c.SUCCEEDED)


def test_the_largest_deadline_is_for_ever() -> None:
    job, observed = running_job(active_deadline_seconds=2**63 - 1)
    assert not c.finished(decide(job, observed, at(1e8)).status.conditions)
