"""Suspend and resume (CTL-2)."""

from __future__ import annotations

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.decide import reasons
from mpi_trainer.decide.mpijob.decide import decide
from mpi_trainer.decide.observed import Record
from tests.unit.decide.mpijob.jobs import (
    T0,
    at,
    condition,
    event_reasons,
    failed_once,
    launcher,
    make_job,
    observe,
    rank,
    replace,
    running_job,
    stored,
    truth,
    with_policy,
    worker,
)


def test_a_job_made_suspended_has_its_key_and_no_pods() -> None:
    decision = decide(make_job(suspend=True), observe(has_key=False), T0)
    assert decision.needs_key
    assert not decision.start_workers
    assert not decision.start_launcher
    assert decision.status.start_time is None
    assert truth(decision.status) == {
        c.CREATED: c.TRUE,
        c.SUSPENDED: c.TRUE,
        c.RUNNING: c.FALSE,
    }
    assert event_reasons(decision) == [reasons.CREATED, reasons.SUSPENDED]
    assert decision.record == Record()


def test_suspending_stops_every_pod_and_the_clock() -> None:
    job, _ = running_job()
    job = with_policy(job, suspend=True)
    observed = observe(launcher(), worker(0, "Failed"), worker(1, terminating=True))
    decision = decide(job, observed, at(5))
    assert decision.stop == ("pi-launcher", "pi-worker-0")
    assert decision.status.start_time is None
    assert condition(decision.status, c.RUNNING).reason == reasons.SUSPENDED
    again = decide(stored(job, decision), observe(record=decision.record), at(6))
    assert not again.acts
    assert again.events == ()
    assert again.requeue_after is None


def test_a_suspended_launcher_has_used_its_attempt_up_once() -> None:
    """What its ranks reported must not count against the launcher that comes after it."""
    job, observed = running_job(backoff_limit=0)
    job = with_policy(job, suspend=True)
    paused = decide(job, observed, at(5))
    assert (paused.record.attempt, paused.record.failures) == (2, ())
    lost = decide(job, observe(*observed.pods, record=paused.record), at(6))
    assert lost.record == paused.record, "though the status was lost"
    job = with_policy(stored(job, paused), suspend=False)
    back = decide(job, observe(record=paused.record), at(7))
    assert back.start_launcher
    pods = (launcher("Succeeded", attempt=2), worker(0, attempt=2), worker(1, attempt=2))
    ranks = (rank(code=None, attempt=1), rank(attempt=2))
    done = decide(stored(job, back), observe(*pods, record=back.record, ranks=ranks), at(9))
    assert c.holds(done.status.conditions, c.SUCCEEDED)


def test_a_launcher_that_vanished_before_suspending_has_used_its_attempt_up_too() -> None:
    job, _ = running_job()
    decision = decide(with_policy(job, suspend=True), observe(worker(0)), at(5))
    assert decision.record.attempt == 2


def test_an_attempt_that_had_no_launcher_goes_on_after_the_suspension() -> None:
    job = make_job(suspend=True)
    assert decide(job, observe(worker(0)), at(5)).record.attempt == 1


def test_resuming_starts_the_job_and_its_clock_anew() -> None:
    job = make_job(suspend=True)
    job = stored(job, decide(job, observe(), T0))
    job = with_policy(job, suspend=False)
    decision = decide(job, observe(), at(60))
    assert decision.status.start_time == at(60)
    assert decision.start_workers == (0, 1)
    resumed = condition(decision.status, c.SUSPENDED)
    assert (resumed.status, resumed.reason) == (c.FALSE, reasons.RESUMED)
    assert event_reasons(decision) == [reasons.RESUMED]
    assert decide(stored(job, decision), observe(), at(61)).events == ()


def test_a_lost_suspension_costs_no_attempt() -> None:
    """CTL-3: record stored, status lost, and resumed before the next look."""
    job, observed = running_job(backoff_limit=0)
    record = decide(with_policy(job, suspend=True), observed, at(5)).record
    first = decide(job, observe(record=record), at(6))
    assert not first.acts
    assert truth(first.status) == {c.CREATED: c.TRUE, c.RUNNING: c.FALSE}
    then = decide(stored(job, first), observe(record=first.record), at(6))
    assert then.start_launcher
    assert then.record.failures == ()


def test_a_rest_outlives_a_suspension() -> None:
    job, record = failed_once()
    paused = decide(with_policy(job, suspend=True), observe(record=record), at(0.5))
    assert paused.record == record
    assert truth(paused.status)[c.RESTARTING] == c.FALSE
    back = decide(stored(job, paused), observe(record=record), at(60))
    assert back.start_launcher
    assert truth(back.status)[c.RESTARTING] == c.TRUE
    assert event_reasons(back) == [reasons.RESUMED, reasons.RESTARTING]


def test_a_suspension_that_kept_its_start_time_is_completed_in_silence() -> None:
    """Upstream leaves startTime as it was; a client would read a suspended job as active."""
    job = make_job(suspend=True)
    told_before = decide(job, observe(), T0).status
    job = make_job(suspend=True, status=replace(told_before, start_time=T0))
    decision = decide(job, observe(), at(6))
    assert decision.events == ()
    assert decision.status.start_time is None
    assert decision.status.conditions == told_before.conditions
