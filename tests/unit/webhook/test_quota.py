"""Quota by arithmetic: the numbers, the remedy, and who is not asked (CTL-4 area 8)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mpi_trainer.api.effective.combine import effective
from mpi_trainer.api.errors import Path
from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml import load
from mpi_trainer.webhook import quota
from mpi_trainer.webhook.resource_demand import JobDemand, mpijob_demand, trainjob_demand
from tests.unit.api.building import CONTAINER, LAUNCHER_POD, POD, POLICY, job

WORKERS: Path = ("spec", "mpiReplicaSpecs", "Worker", "replicas")
GPU = "requests.nvidia.com/gpu"


def made(*changes: tuple[Path, Any]) -> MPIJob:
    loaded = load.job(job(*changes))
    assert not loaded.errors
    assert isinstance(loaded.value, MPIJob)
    return loaded.value


def demand(*changes: tuple[Path, Any]) -> JobDemand:
    return mpijob_demand(made(*changes))


def gpus(workers: int, each: int, *changes: tuple[Path, Any]) -> JobDemand:
    limits = {"limits": {"nvidia.com/gpu": each}}
    return demand((WORKERS, workers), ((*CONTAINER, "resources"), limits), *changes)


def quotas(hard: dict[str, str], used: dict[str, str], **spec: Any) -> list[quota.ResourceQuota]:
    data = {"metadata": {"name": "team"}, "spec": spec, "status": {"hard": hard, "used": used}}
    return [msgspec.convert(data, quota.ResourceQuota)]


def test_more_than_the_hard_limit_is_refused_with_all_the_numbers() -> None:
    found = quota.errors(gpus(8, 2), quotas({GPU: "8"}, {GPU: "6"}), 3)
    assert [str(error) for error in found] == [
        "spec.mpiReplicaSpecs.Worker.replicas: Forbidden: quota exceeded: asks for 16 "
        "requests.nvidia.com/gpu (8 workers x 2); quota `team` allows 8, 6 in use by 3 jobs, 2 "
        "left; use at most 4 workers, ask for less per worker, or have the quota raised"
    ]
    assert not quota.warnings(gpus(8, 2), quotas({GPU: "8"}, {GPU: "6"}), 3)


def test_more_than_what_is_left_is_a_warning_that_says_what_fits_now() -> None:
    found = quota.warnings(gpus(4, 2), quotas({GPU: "8"}, {GPU: "6"}), 1)
    assert len(found) == 1
    assert "6 in use by 1 job, 2 left" in str(found[0])
    assert "1 worker would fit now" in str(found[0])
    assert not quota.errors(gpus(4, 2), quotas({GPU: "8"}, {GPU: "6"}), 1)


def test_what_fits_says_nothing() -> None:
    assert not quota.errors(gpus(4, 2), quotas({GPU: "8"}, {GPU: "0"}), 0)
    assert not quota.warnings(gpus(4, 2), quotas({GPU: "8"}, {GPU: "0"}), 0)


@pytest.mark.parametrize(
    "change",
    [
        ((*POLICY, "suspend"), True),
        (("metadata", "labels"), {LABEL_QUEUE: "team-a"}),
    ],
)
def test_a_suspended_or_queued_job_asks_for_nothing_yet(change: tuple[Path, Any]) -> None:
    assert not quota.errors(gpus(8, 2, change), quotas({GPU: "8"}, {}), 0)


def test_launcher_counts_beside_the_workers() -> None:
    wanted = demand(
        ((*CONTAINER, "resources"), {"requests": {"memory": "4Gi"}}),
        ((*LAUNCHER_POD, "containers", 0, "resources"), {"requests": {"memory": "1Gi"}}),
    )
    found = quota.errors(wanted, quotas({"requests.memory": "8Gi"}, {}), 0)
    assert "asks for 9Gi requests.memory (launcher 1Gi + 2 workers x 4Gi)" in str(found[0])
    assert "use at most 1 worker," in str(found[0])


def test_init_containers_sidecars_and_overhead_count_as_the_scheduler_counts_them() -> None:
    def uses(cpu: str, **more: str) -> dict[str, Any]:
        name = f"c{cpu}"
        return {"name": name, "image": "x", "resources": {"requests": {"cpu": cpu}}, **more}

    wanted = demand(
        (WORKERS, 1),
        ((*POD, "initContainers"), [uses("1", restartPolicy="Always"), uses("4")]),
        ((*POD, "containers"), [uses("2")]),
        ((*POD, "overhead"), {"cpu": "500m"}),
    )
    found = quota.errors(wanted, quotas({"cpu": "5"}, {}), 0)
    assert "asks for 5500m cpu (1 worker x 5500m)" in str(found[0])


def test_a_request_that_is_not_written_equals_its_limit() -> None:
    wanted = demand(((*CONTAINER, "resources"), {"limits": {"cpu": "3"}}))
    assert quota.errors(wanted, quotas({"requests.cpu": "5"}, {}), 0)
    assert quota.errors(wanted, quotas({"limits.cpu": "5"}, {}), 0)
    assert not quota.errors(wanted, quotas({"limits.cpu": "6"}, {}), 0)


def test_pods_themselves_are_counted() -> None:
    found = quota.errors(demand((WORKERS, 10)), quotas({"pods": "8"}, {}), 0)
    assert "asks for 11 pods (launcher 1 + 10 workers x 1)" in str(found[0])
    assert "use at most 7 workers" in str(found[0])


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ({"scopes": ["BestEffort"]}, True),
        ({"scopes": ["NotBestEffort"]}, False),
        ({"scopes": ["Terminating"]}, False),
        ({"scopes": ["NotTerminating"]}, True),
        ({"scopes": ["PriorityClass"]}, False),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [
                        {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
                    ]
                }
            },
            False,
        ),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [
                        {"scopeName": "PriorityClass", "operator": "NotIn", "values": ["high"]}
                    ]
                }
            },
            True,
        ),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "DoesNotExist"}]
                }
            },
            True,
        ),
    ],
)
def test_a_quota_binds_only_pods_of_its_scope(spec: dict[str, Any], counts: bool) -> None:
    assert bool(quota.errors(demand((WORKERS, 9)), quotas({"pods": "3"}, {}, **spec), 0)) is counts


def test_priority_class_of_the_template_is_what_a_scope_selects() -> None:
    spec = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["h"]}]}
    wanted = demand((WORKERS, 9), ((*POD, "priorityClassName"), "h"))
    found = quota.errors(wanted, quotas({"pods": "3"}, {}, scopeSelector=spec), 0)
    assert "asks for 9 pods (9 workers x 1)" in str(found[0])


def trained(nodes: int, *, launcher_too: bool, queue: str = "", waits: bool = True) -> JobDemand:
    """Of MPI, with two GPUs on every node, a launcher and a dataset initializer, for which the
    nodes wait or not."""
    after = {"dependsOn": [{"name": "dataset-initializer", "status": "Complete"}]} if waits else {}
    limits = {"limits": {"nvidia.com/gpu": 2}}

    def replicated(name: str, step: str, **container: Any) -> dict[str, Any]:
        one = {"name": "node", "image": "x", **container}
        labels = {"trainer.kubeflow.org/trainjob-ancestor-step": step} if step else {}
        template = {"spec": {"template": {"spec": {"containers": [one]}}}}
        return {"name": name, "template": {"metadata": {"labels": labels}, **template}}

    found = load.runtime(
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "ClusterTrainingRuntime",
            "metadata": {"name": "mpi"},
            "spec": {
                "mlPolicy": {"numNodes": 1, "mpi": {"runLauncherAsNode": launcher_too}},
                "template": {
                    "spec": {
                        "replicatedJobs": [
                            replicated("dataset-initializer", "dataset-initializer", **GREEDY),
                            replicated("launcher", "trainer"),
                            {**replicated("node", ""), **after},
                        ]
                    }
                },
            },
        }
    )
    wanted = load.train_job(
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {
                "name": "tune",
                "namespace": "a",
                "labels": {LABEL_QUEUE: queue} if queue else {},
            },
            "spec": {
                "runtimeRef": {"name": "mpi"},
                "trainer": {"numNodes": nodes, "resourcesPerNode": limits},
            },
        }
    )
    assert isinstance(found.value, Runtime) and isinstance(wanted.value, TrainJob)
    assert not wanted.errors
    return trainjob_demand(wanted.value, effective(wanted.value, found.value))


GREEDY = {"resources": {"limits": {"nvidia.com/gpu": 6}}}


def test_a_trainjob_is_counted_by_its_nodes() -> None:
    """CTL-4 area 8; an initializer has ended before the nodes begin."""
    found = quota.errors(trained(8, launcher_too=True), quotas({GPU: "8"}, {GPU: "6"}), 3)
    assert [str(error) for error in found] == [
        "spec.trainer.numNodes: Forbidden: quota exceeded: asks for 16 "
        "requests.nvidia.com/gpu (launcher 2 + 7 nodes x 2); quota `team` allows 8, 6 in use by "
        "3 jobs, 2 left; use at most 4 nodes, ask for less per node, or have the quota raised"
    ]


def test_a_job_that_runs_beside_the_nodes_is_counted_with_them() -> None:
    wanted = trained(3, launcher_too=True, waits=False)
    (error,) = quota.errors(wanted, quotas({GPU: "8"}, {}), 0)
    assert "asks for 12 requests.nvidia.com/gpu (dataset-initializer 6 + launcher 2" in str(error)
    assert not quota.errors(trained(3, launcher_too=True), quotas({GPU: "8"}, {}), 0)


def test_what_comes_before_the_nodes_must_have_room_too() -> None:
    (error,) = quota.errors(trained(2, launcher_too=True), quotas({GPU: "5"}, {}), 0)
    assert str(error).startswith("spec.runtimeRef.name: Forbidden: quota exceeded: asks for 6")


def test_a_trainjob_that_fits_later_or_is_queued_is_not_refused() -> None:
    now = quotas({GPU: "8"}, {GPU: "4"})
    _, warning = quota.warnings(trained(4, launcher_too=True), now, 1)
    assert "2 nodes would fit now" in str(warning)
    assert not quota.errors(trained(4, launcher_too=True), now, 1)
    assert not quota.errors(trained(8, launcher_too=True, queue="team-a"), now, 1)
