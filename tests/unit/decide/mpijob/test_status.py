"""Conditions, counts, times and events, as clients read them (API-5)."""

from __future__ import annotations

import pytest

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.managers import MPI_OPERATOR, MULTIKUEUE
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, ReplicaStatus
from mpi_trainer.decide import reasons
from mpi_trainer.decide.mpijob.decide import decide, ours
from mpi_trainer.decide.mpijob.decision import MPIJobDecision
from mpi_trainer.decide.observed import End
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
    worker,
)


def counts(decision: MPIJobDecision) -> tuple[ReplicaStatus, ReplicaStatus]:
    found = decision.status.replica_statuses
    return found[LAUNCHER], found[WORKER]


@pytest.mark.parametrize("name", [None, "", MPI_OPERATOR])
def test_an_own_job_is_started(name: str | None) -> None:
    job = make_job(managed_by=name)
    assert ours(job)
    assert decide(job, observe(has_key=False), T0).acts


def test_a_job_of_another_controller_is_left_alone() -> None:
    job = make_job(managed_by=MULTIKUEUE)
    assert not ours(job)
    decision = decide(job, observe(has_key=False), T0)
    assert decision == MPIJobDecision(job.status, observe().record)
    assert not decision.acts


def test_a_job_being_deleted_is_left_alone() -> None:
    job = make_job()
    job = replace(job, metadata=replace(job.metadata, deletion_timestamp=T0))
    assert decide(job, observe(), T0) == MPIJobDecision(job.status, observe().record)


def test_first_look_tells_created_and_starts_everything() -> None:
    decision = decide(make_job(), observe(has_key=False), T0)
    assert truth(decision.status) == {c.CREATED: c.TRUE}
    assert event_reasons(decision) == [reasons.CREATED]
    assert decision.needs_key
    assert decision.start_workers == (0, 1)
    assert decision.start_launcher
    assert decision.status.start_time == T0
    assert decision.status.last_reconcile_time == T0


@pytest.mark.parametrize(
    ("pods", "runs"),
    [
        ((launcher(), worker(0), worker(1)), True),
        ((launcher("Pending"), worker(0), worker(1)), False),
        ((launcher(), worker(0), worker(1, "Pending")), False),
        ((worker(0), worker(1)), False),
    ],
)
def test_running_means_launcher_and_every_worker(pods: tuple[object, ...], runs: bool) -> None:
    decision = decide(make_job(), observe(*pods), T0)  # type: ignore[arg-type]
    assert c.holds(decision.status.conditions, c.RUNNING) is runs


def test_looking_twice_tells_and_writes_nothing_twice() -> None:
    job, observed = running_job()
    again = decide(job, observed, at(60))
    assert again.status == job.status
    assert again.events == ()
    assert not again.acts


def test_an_act_without_news_is_no_write() -> None:
    """Else a pod that takes its time to start would cost one write a look."""
    job = make_job()
    job = stored(job, decide(job, observe(), T0))
    again = decide(job, observe(), at(1))
    assert again.start_workers == (0, 1)
    assert again.status == job.status


def test_transition_time_moves_with_the_status_only() -> None:
    job, _ = running_job()
    failing = observe(launcher("Failed"), worker(0), worker(1))
    first = decide(job, failing, at(10))
    job = stored(job, first)
    assert condition(job.status, c.CREATED).last_transition_time == T0
    assert condition(job.status, c.RUNNING).last_transition_time == at(10)
    begun = decide(job, observe(record=first.record), at(20))
    restarting = condition(begun.status, c.RESTARTING)
    assert restarting.last_transition_time == at(10)
    assert restarting.last_update_time == at(20)


def test_counts_while_the_job_lives() -> None:
    job, observed = running_job()
    assert counts(decide(job, observed, T0)) == (ReplicaStatus(active=1), ReplicaStatus(active=2))
    mixed = observe(launcher(), worker(0, "Succeeded"), worker(1, terminating=True))
    assert counts(decide(job, mixed, T0)) == (ReplicaStatus(active=1), ReplicaStatus(succeeded=1))


def test_failed_workers_are_counted_while_they_are_there() -> None:
    """AC-14."""
    job, _ = running_job()
    decision = decide(job, observe(launcher(), worker(0), worker(1, "Failed")), T0)
    assert counts(decision)[1] == ReplicaStatus(active=1, failed=1)


def test_launcher_failures_are_remembered_when_its_pods_are_gone() -> None:
    job, record = failed_once()
    assert counts(decide(job, observe(record=record), at(9)))[0] == ReplicaStatus(failed=1)


def test_counts_of_the_end_outlive_the_pods() -> None:
    """API-5: upstream forgets them."""
    job, _ = running_job(clean_pod_policy="All")
    pods = (launcher("Succeeded"), worker(0), worker(1, "Succeeded"))
    job = stored(job, decide(job, observe(*pods), at(5)))
    before = (ReplicaStatus(succeeded=1), ReplicaStatus(active=1, succeeded=1))
    assert counts(decide(job, observe(*pods), at(6))) == before
    after = (ReplicaStatus(succeeded=1), ReplicaStatus(succeeded=1))
    assert counts(decide(job, observe(), at(6))) == after


@pytest.mark.parametrize("limit", [0, 3])
def test_a_launcher_whose_ranks_failed_has_not_succeeded(limit: int) -> None:
    job, _ = running_job(backoff_limit=limit)
    observed = observe(
        launcher("Succeeded"), worker(0), ranks=(rank(code=1, pod="pi-launcher"), rank())
    )
    assert counts(decide(job, observed, at(5)))[0] == ReplicaStatus(failed=1)


def test_reconcile_time_moves_when_the_status_does() -> None:
    job, observed = running_job()
    assert decide(job, observed, at(9)).status.last_reconcile_time == T0
    fewer = observe(launcher(), worker(0))
    assert decide(job, fewer, at(9)).status.last_reconcile_time == at(9)


def test_an_end_by_exit_code_0_is_well() -> None:
    assert End(code=0).well
    assert not End(signal=9).well


def test_a_job_that_seems_to_be_stuck_is_marked_once_and_runs_on() -> None:
    job, seen = running_job()
    before = condition(job.status, c.RUNNING)
    marked = decide(job, replace(seen, suspicion="rank 2 waits"), at(400))
    after = condition(marked.status, c.RUNNING)
    assert (after.status, after.reason) == (before.status, before.reason)
    assert after.last_transition_time == before.last_transition_time
    assert after.message == "MPIJob lab/pi is running, and seems to be stuck: rank 2 waits."
    assert event_reasons(marked) == [reasons.NO_PROGRESS]
    assert not marked.acts
    again = decide(stored(job, marked), replace(seen, suspicion="rank 2 waits"), at(500))
    assert (again.events, again.status) == ((), marked.status)


def test_a_job_that_goes_on_loses_its_mark() -> None:
    job, seen = running_job()
    before = condition(job.status, c.RUNNING)
    marked = decide(job, replace(seen, suspicion="rank 2 waits"), at(400))
    cleared = decide(stored(job, marked), seen, at(500))
    assert condition(cleared.status, c.RUNNING).message == before.message
    assert event_reasons(cleared) == [reasons.PROGRESS]
    assert decide(stored(job, cleared), seen, at(600)).events == ()
