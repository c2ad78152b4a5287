"""A job that grows or shrinks while it runs (C-14)."""

from __future__ import annotations

import pytest

from mpi_trainer.decide.mpijob.decide import decide
from mpi_trainer.decide.mpijob.decision import MPIJobDecision
from mpi_trainer.decide.observed import ObservedPod
from tests.unit.decide.mpijob.jobs import (
    at,
    launcher,
    observe,
    replace,
    running_job,
    with_workers,
    worker,
)

LED = launcher(workers=2)


def resized(workers: int, *pods: ObservedPod) -> MPIJobDecision:
    """A look at a job that ran with two workers and is to have so many."""
    job, _ = running_job()
    return decide(with_workers(job, workers), observe(*pods), at(5))


def test_new_workers_come_before_the_launcher_hears_of_them() -> None:
    first = resized(4, LED, worker(0), worker(1))
    assert (first.start_workers, first.resize) == ((2, 3), False)
    pending = resized(4, LED, *map(worker, range(3)), worker(3, "Pending"))
    assert (pending.start_workers, pending.resize) == ((), False)
    assert resized(4, LED, *map(worker, range(4))).resize


def test_the_launcher_hears_of_workers_that_go_before_they_do() -> None:
    first = resized(1, LED, worker(0), worker(1))
    assert (first.resize, first.stop) == (True, ())
    told = replace(LED, workers=1)
    then = resized(1, told, worker(0), worker(1))
    assert (then.resize, then.stop) == (False, ("pi-worker-1",))
    gone = resized(1, told, worker(0))
    assert not gone.acts


@pytest.mark.parametrize("workers", [1, 4])
def test_a_launcher_that_has_heard_hears_it_once(workers: int) -> None:
    pods = (replace(LED, workers=workers), *map(worker, range(workers)))
    assert not resized(workers, *pods).acts


def test_the_launcher_of_another_controller_hears_nothing() -> None:
    theirs = [replace(pod, foreign=True) for pod in (LED, worker(0), worker(1))]
    decision = resized(4, *theirs)
    assert (decision.resize, decision.start_workers) == (False, ())


def test_growth_does_not_end_the_attempt() -> None:
    decision = resized(4, LED, worker(0), worker(1), worker(2, "Pending"))
    assert decision.record.failures == ()


def test_a_job_that_shrinks_and_grows_again_waits_for_the_workers_that_go() -> None:
    """C-14: the launcher no longer counts on them, so their going is no failure of the attempt,
    and the others are not given back for them, however long it takes."""
    told = replace(LED, workers=1)
    going = replace(worker(1), terminating=True, gone_by=at(-3600))
    decision = resized(2, told, worker(0), going)
    assert (decision.record.failures, decision.record.retry_at) == ((), None)
    assert (decision.stop, decision.start_workers, decision.resize) == ((), (), False)
    assert resized(2, told, worker(0)).start_workers == (1,)


def test_a_worker_that_the_launcher_counts_on_and_that_goes_ends_the_attempt() -> None:
    going = replace(worker(1), terminating=True)
    assert resized(3, LED, worker(0), going, worker(2)).record.failures
