"""MIG-4: how far the jobs of a cluster are."""

from __future__ import annotations

from mpi_trainer.migrate.progress import progress
from tests.unit.migrate.cases import base
from tests.unit.migrate.test_legacy import V1

TRAINJOB = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": "new", "namespace": "a"}}  # fmt: skip


def test_jobs_are_counted_by_api_and_by_what_they_would_take() -> None:
    """MIG-4."""
    easy = base(runPolicy={"cleanPodPolicy": "Running"})
    for role in easy["spec"]["mpiReplicaSpecs"].values():
        role["template"]["spec"]["containers"][0]["name"] = "node"
    alone = base()
    del alone["spec"]["mpiReplicaSpecs"]["Worker"]
    found = progress([(easy, True), (base(), False), (alone, False), (V1, False), (TRAINJOB, True)])
    assert found.by_api == {
        "MPIJob kubeflow.org/v1": 1,
        "MPIJob kubeflow.org/v2beta1": 3,
        "TrainJob trainer.kubeflow.org/v1alpha1": 1,
    }
    assert found.by_effort == {"blocked": 1, "none": 1, "some": 2}
    assert [job.ended for job in found.jobs] == [True, False, False, False, True]


def test_what_blocks_a_job_is_said_with_its_field() -> None:
    alone = base()
    del alone["spec"]["mpiReplicaSpecs"]["Worker"]
    (job,) = progress([(alone, False)]).jobs
    assert job.reasons[0].startswith("spec.mpiReplicaSpecs.Worker.replicas: Invalid value")


def test_reasons_are_counted_over_jobs() -> None:
    found = progress([(base(), False)] * 3)
    assert set(found.by_reason.values()) == {3}
    assert progress([]).by_api == {}
