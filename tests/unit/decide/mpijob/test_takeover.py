"""Pods of the public operator, after this controller has taken its place (C-5, MIG-3)."""

from __future__ import annotations

from typing import Any

from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, ReplicaStatus
from mpi_trainer.decide.mpijob.decide import decide
from mpi_trainer.decide.mpijob.decision import MPIJobDecision
from mpi_trainer.decide.observed import End, ObservedPod
from tests.unit.decide.mpijob.jobs import (
    T0,
    at,
    condition,
    launcher,
    make_job,
    observe,
    replace,
    running_job,
    stored,
    truth,
    worker,
)


def theirs(pod: ObservedPod, **more: Any) -> ObservedPod:
    return replace(pod, foreign=True, workers=None, **more)


LED = (theirs(launcher()), theirs(worker(0)), theirs(worker(1)))


def settle(decision: MPIJobDecision, *pods: ObservedPod) -> MPIJobDecision:
    """The next look, with what was decided stored."""
    observed = observe(*pods, record=decision.record)
    return decide(stored(make_job(), decision), observed, at(2))


def test_a_running_job_is_left_alone() -> None:
    job, _ = running_job()
    decision = decide(job, observe(*LED), at(5))
    assert not decision.acts
    assert decision.record.attempt == 1


def test_a_launcher_job_that_has_spent_the_budget_ends_the_job() -> None:
    """Its tries were the job's: none is added to them."""
    job, _ = running_job(backoff_limit=3)
    ended = theirs(launcher("Failed"), end=End(code=7, reason="BackoffLimitExceeded"))
    decision = decide(job, observe(ended, *LED[1:]), at(5))
    failed = condition(decision.status, "Failed")
    assert failed.reason == "BackoffLimitExceeded"
    assert "exit code 7" in failed.message
    assert decision.record.retry_at is None


def test_the_deadline_of_its_job_keeps_its_name() -> None:
    job, _ = running_job()
    late = theirs(launcher("Failed"), end=End(reason="DeadlineExceeded"))
    decision = decide(job, observe(late, *LED[1:]), at(5))
    assert condition(decision.status, "Failed").reason == "DeadlineExceeded"


def test_a_launcher_between_two_tries_of_its_job_is_waited_for() -> None:
    job, _ = running_job()
    decision = decide(job, observe(theirs(launcher("Pending")), *LED[1:]), at(5))
    assert not decision.acts
    assert truth(decision.status)["Running"] == "True"


def test_workers_without_their_launcher_are_replaced_before_ours_comes() -> None:
    """Ours would find neither its sshd nor its keys there."""
    first = decide(make_job(), observe(theirs(worker(0)), theirs(worker(1))), T0)
    assert not first.start_launcher
    cleared = settle(first, theirs(worker(0)), theirs(worker(1)))
    assert cleared.stop == ("pi-worker-0", "pi-worker-1")
    assert not cleared.start_launcher
    begun = settle(cleared)
    assert (begun.start_workers, begun.start_launcher) == ((0, 1), True)
    assert begun.record.failures == ()


def test_a_job_that_lacks_a_worker_before_it_ran_begins_anew() -> None:
    first = decide(make_job(), observe(theirs(launcher()), theirs(worker(0))), T0)
    assert not first.start_workers
    assert set(settle(first, theirs(launcher()), theirs(worker(0))).stop) == {
        "pi-launcher",
        "pi-worker-0",
    }


def test_a_worker_that_vanishes_under_a_running_launcher_ends_the_attempt() -> None:
    job, _ = running_job()
    counts = {LAUNCHER: ReplicaStatus(active=1), WORKER: ReplicaStatus(active=2)}
    job = replace(job, status=replace(job.status, replica_statuses=counts))
    decision = decide(job, observe(LED[0], LED[1]), at(5))
    assert decision.record.failures[0].pod == "pi-worker-1"
    assert not decision.start_workers


def test_a_retry_replaces_every_worker_that_was_not_ours() -> None:
    job, _ = running_job()
    broken = theirs(worker(1, "Failed"), end=End(code=9))
    decision = decide(job, observe(LED[0], LED[1], broken), at(5))
    later = settle(decision, LED[0], LED[1], broken)
    assert set(later.stop) == {"pi-launcher", "pi-worker-0", "pi-worker-1"}
