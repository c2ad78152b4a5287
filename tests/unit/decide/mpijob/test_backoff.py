"""One budget for all failures, and a rest between attempts (CTL-11, AC-14)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.decide import reasons
from mpi_trainer.decide.mpijob import backoff
from mpi_trainer.decide.mpijob.decide import decide
from mpi_trainer.decide.observed import End, Failure, Record
from tests.unit.decide.mpijob.jobs import (
    T0,
    at,
    condition,
    event_reasons,
    failed_once,
    launcher,
    make_job,
    observe,
    record_of,
    running_job,
    truth,
    worker,
)


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 1), (1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (10_000, 60)]
)
def test_rest_doubles_up_to_a_minute(failures: int, seconds: int) -> None:
    assert backoff.delay(failures) == timedelta(seconds=seconds)


@pytest.mark.parametrize(("given", "limit"), [(None, 6), (0, 0), (3, 3)])
def test_limit_is_six_unless_given(given: int | None, limit: int) -> None:
    assert backoff.limit(make_job(backoff_limit=given)) == limit


@pytest.mark.parametrize(("earlier", "over"), [(0, False), (1, False), (2, True), (5, True)])
def test_a_job_fails_beyond_its_limit(earlier: int, over: bool) -> None:
    """AC-14: backoffLimit 2 means three attempts."""
    job, _ = running_job(backoff_limit=2)
    past = (Failure(n + 1, "X", "m", "pi-worker-0") for n in range(earlier))
    record = record_of(*past, attempt=earlier + 1)
    dead = worker(0, "Failed", end=End(code=3))
    decision = decide(job, observe(launcher(attempt=earlier + 1), dead, record=record), at(3))
    assert c.finished(decision.status.conditions) is over
    assert len(decision.record.failures) == earlier + 1


def test_spent_budget_names_the_last_failure_in_condition_and_event() -> None:
    """AC-15."""
    job, _ = running_job(backoff_limit=1)
    record = record_of(Failure(1, "X", "m", "pi-launcher"), attempt=2)
    dead = launcher("Failed", attempt=2, end=End(code=137))
    decision = decide(job, observe(dead, worker(0), worker(1), record=record), at(3))
    failed = condition(decision.status, c.FAILED)
    assert failed.reason == reasons.BACKOFF_LIMIT
    assert failed.message == (
        "2 attempts failed; the last: Launcher pi-launcher ended with exit code 137"
    )
    assert event_reasons(decision) == [reasons.LAUNCHER_FAILED, reasons.BACKOFF_LIMIT]
    assert decision.record.failures[-1].reason == reasons.LAUNCHER_FAILED
    assert decision.status.completion_time == at(3)
    assert truth(decision.status)[c.RUNNING] == c.FALSE


def test_a_clock_that_went_back_does_not_prolong_the_rest() -> None:
    job, record = failed_once()
    observed = observe(worker(0), worker(1), record=record)
    early = decide(job, observed, at(-86_400))
    assert early.record.retry_at == at(-86_400 + 1)
    assert early.requeue_after == timedelta(seconds=1)


def test_a_rest_in_time_is_left_alone() -> None:
    job, record = failed_once()
    assert decide(job, observe(worker(0), worker(1), record=record), T0).record == record


def test_attempts_broken_off_cost_nothing_of_the_budget() -> None:
    job, _ = running_job(backoff_limit=1)
    observed = observe(launcher("Failed", attempt=9), worker(0), record=Record(attempt=9))
    assert not c.finished(decide(job, observed, at(1)).status.conditions)
