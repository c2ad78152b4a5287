"""A pod on a lost node holds the others' resources for minutes, not for ever (C-12)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mpi_trainer.decide.mpijob import lost_pods
from mpi_trainer.decide.mpijob.decide import decide
from mpi_trainer.decide.mpijob.decision import MPIJobDecision
from mpi_trainer.decide.observed import Observed, ObservedPod
from tests.unit.decide.mpijob.jobs import (
    T0,
    at,
    event_reasons,
    failed_once,
    launcher,
    make_job,
    observe,
    replace,
    with_workers,
    worker,
)

MINUTES = lost_pods.RELEASED_AFTER / timedelta(seconds=1)


def lost(index: int) -> ObservedPod:
    return worker(index, terminating=True, gone_by=at(30))


def decide_at(*pods: ObservedPod, seconds: float) -> MPIJobDecision:
    """At a job between two attempts."""
    job, record = failed_once()
    return decide(job, observe(*pods, record=record), at(seconds))


@pytest.mark.parametrize(
    ("seconds", "released"),
    [(60, ()), (29 + MINUTES, ()), (30 + MINUTES, ("pi-worker-0",)), (86400, ("pi-worker-0",))],
)
def test_healthy_workers_wait_for_a_lost_one_for_minutes(
    seconds: float, released: tuple[str, ...]
) -> None:
    decision = decide_at(worker(0), lost(1), seconds=seconds)
    assert decision.stop == released
    assert not decision.start_workers
    assert event_reasons(decision)[-1:] == (["WorkersReleased"] if released else [])


def test_a_job_looks_again_when_the_time_is_over() -> None:
    decision = decide_at(worker(0), lost(1), seconds=25 + MINUTES)
    assert decision.requeue_after is not None
    assert decision.requeue_after <= timedelta(seconds=5)


def test_who_is_released_is_told_once_and_with_what_to_do() -> None:
    decision = decide_at(worker(0), lost(1), seconds=3600)
    assert "pi-worker-1" in decision.events[-1].message
    assert "delete the Node" in decision.events[-1].message
    later = decide_at(replace(lost(0), gone_by=None), lost(1), seconds=3601)
    assert (later.stop, event_reasons(later)) == ((), [])


def test_the_next_attempt_starts_all_workers_anew_once_the_lost_one_is_gone() -> None:
    decision = decide_at(seconds=7200)
    assert decision.start_workers == (0, 1)


def test_a_launcher_that_does_not_go_holds_nobody_either() -> None:
    stuck = launcher(terminating=True, gone_by=at(30))
    assert decide_at(stuck, worker(0), worker(1), seconds=3600).stop == (
        "pi-worker-0",
        "pi-worker-1",
    )


def test_workers_of_a_job_that_has_not_begun_are_released_too() -> None:
    observed: Observed = observe(worker(0), lost(1))
    assert decide(make_job(), observed, T0).stop == ()
    assert decide(make_job(), observed, at(3600)).stop == ("pi-worker-0",)


def test_a_worker_too_many_on_a_lost_node_holds_nothing_up() -> None:
    """C-14: a job that shrank does not wait for what it has no use for."""
    job = with_workers(make_job(), 1)
    decision = decide(job, observe(lost(1)), at(3600))
    assert decision.start_workers == (0,)
    assert decision.start_launcher
