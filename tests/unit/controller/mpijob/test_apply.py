"""What is deleted so that a part of a job ends."""

from __future__ import annotations

from mpi_trainer.controller.mpijob.apply import to_stop
from mpi_trainer.controller.mpijob.observe import Observation, observe, owned_objects
from mpi_trainer.controller.objects import Job, Pod
from mpi_trainer.decide.observed import Record
from mpi_trainer.kube.resources import JOBS, PODS
from tests.unit.controller.objects import batch_job, launcher, mpijob, owner, worker


def seen(pods: list[Pod], jobs: list[Job], proven: frozenset[str] = frozenset()) -> Observation:
    return observe(mpijob(), Record(), owned_objects(mpijob(), pods, jobs, proven))


def test_a_launcher_goes_with_its_job_and_a_worker_alone() -> None:
    view = seen([launcher(), worker()], [batch_job()])
    assert to_stop(view, "pi-launcher") == (JOBS, batch_job().metadata)
    assert to_stop(view, "pi-worker-0") == (PODS, worker().metadata)


def test_a_job_that_is_not_the_mpijobs_is_never_deleted() -> None:
    """S-12: a pod that was the job's names another Job as its owner by now."""
    other = {"ownerReferences": [owner("Job", "payroll", "another")]}
    moved = launcher(metadata=other)
    view = seen([moved], [], frozenset({moved.metadata.uid}))
    assert to_stop(view, "pi-launcher") == (PODS, moved.metadata)
