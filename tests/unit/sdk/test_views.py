"""Jobs of every kind as one neutral value (AC-17)."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.api.kinds import annotations as a
from mpi_trainer.sdk.backends.backend import JobView, Key, ReplicaCount
from mpi_trainer.sdk.backends.cluster import lifecycle
from mpi_trainer.sdk.backends.cluster.find import FoundJob
from mpi_trainer.sdk.backends.cluster.kinds import KINDS, MPIJOB, TRAINJOB, Kind
from mpi_trainer.sdk.backends.cluster.observed import Meta, Pod
from mpi_trainer.sdk.backends.views import LONG_AGO, summary
from mpi_trainer.sdk.errors import JobError
from openshift_ai_sdk.training import MPIJob

FAILED = {"type": "Failed", "status": "True", "reason": "Broken", "message": "rank 3 ended"}
META: dict[str, Any] = {
    "name": "train",
    "namespace": "team",
    "uid": "u1",
    "annotations": {"a": "b"},
    "managedFields": [{"manager": "kubectl"}],
}
PYTORCH = KINDS[2]


def stored(**parts: Any) -> dict[str, Any]:
    """As an item of a list has it: without its kind."""
    return {"metadata": META, "spec": {}, **parts}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource.kind)
def test_every_kind_says_who_it_is_in_its_own_words(kind: Kind) -> None:
    view = kind.view(stored(status={"conditions": [FAILED]}))
    assert (view.kind, str(view.key), view.uid) == (kind.resource.kind, "team/train", "u1")
    assert (view.state, view.reason, view.message) == ("Failed", "Broken", "rank 3 ended")
    assert view.finished and view.annotations == {"a": "b"}
    assert view.manifest["kind"] == kind.resource.kind
    assert view.manifest["apiVersion"] == kind.resource.api_version
    assert "managedFields" not in view.manifest["metadata"]


def test_what_is_asked_for_and_what_runs_is_counted_alike() -> None:
    views = [_mpijob(), _trainjob(), _pytorchjob()]
    assert [view.counts.workers for view in views] == [ReplicaCount(3, active=2)] * 3
    assert [view.slots for view in views] == [4, 4, 1]
    assert [view.suspend for view in views] == [True] * 3


def _mpijob() -> JobView:
    spec = {
        "slotsPerWorker": 4,
        "runPolicy": {"suspend": True},
        "mpiReplicaSpecs": {"Worker": {"replicas": 3}},
    }
    return MPIJOB.view(stored(spec=spec, status={"replicaStatuses": {"Worker": {"active": 2}}}))


def _trainjob() -> JobView:
    spec = {"suspend": True, "trainer": {"numNodes": 3, "numProcPerNode": 4}}
    return TRAINJOB.view(stored(spec=spec, status={"jobsStatus": [{"name": "node", "active": 2}]}))


def _pytorchjob() -> JobView:
    replicas = {"Master": {"replicas": 1}, "Worker": {"replicas": 2}}
    spec = {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": replicas}
    return PYTORCH.view(stored(spec=spec, status={"replicaStatuses": {"Worker": {"active": 2}}}))


def test_every_replica_of_an_older_kind_is_counted_and_its_master_apart() -> None:
    """AC-17: as the training operator writes it, by types of its own."""
    replicas = {"Chief": {"replicas": 1}, "PS": {"replicas": 2}, "Worker": {"replicas": 3}}
    status = {"Chief": {"active": 1}, "PS": {"active": 2}, "Worker": {"active": 1, "failed": 2}}
    spec = {"tfReplicaSpecs": replicas}
    view = KINDS[3].view(stored(spec=spec, status={"replicaStatuses": status}))
    assert view.counts.launcher == ReplicaCount(1, active=1)
    assert view.counts.workers == ReplicaCount(6, active=4, failed=2)
    alone = KINDS[3].view(stored(spec={"tfReplicaSpecs": {"Worker": {"replicas": 2}}}))
    assert alone.counts.launcher == ReplicaCount(0)


def test_pods_of_another_kind_s_job_of_the_same_name_are_not_this_job_s() -> None:
    name, label = Key("team", "train"), "training.kubeflow.org/operator-name"
    mpi, _, torch, tf = (kind.selector(name) for kind in KINDS)
    assert mpi.endswith(f",{label}!=pytorchjob-controller,{label}!=tfjob-controller")
    assert (torch[-22:], tf[-17:]) == ("=pytorchjob-controller", "=tfjob-controller")


@pytest.mark.parametrize(
    ("labels", "role", "numbered"),
    [
        ({"replica-type": "master", "job-role": "master"}, "launcher", False),
        ({"replica-type": "chief", "job-role": "master"}, "launcher", False),
        ({"replica-type": "worker", "job-role": "master"}, "worker", True),
        ({"replica-type": "ps"}, "worker", False),
        ({"job-role": "launcher"}, "launcher", True),
        ({"job-role": "worker"}, "worker", True),
        ({}, "worker", True),
    ],
)
def test_the_type_of_a_replica_says_what_a_pod_is(
    labels: dict[str, str], role: str, numbered: bool
) -> None:
    """Where there is no master the operator gives the first worker the role of one."""
    found = {f"training.kubeflow.org/{name}": value for name, value in labels.items()}
    pod = Pod(metadata=Meta(labels=found))
    assert (pod.role, pod.numbered) == (role, numbered)


def test_strange_object_is_shown_with_what_is_understood_of_it() -> None:
    view = MPIJOB.view({"metadata": {"name": "odd"}, "spec": 7, "status": {"conditions": "no"}})
    assert (view.name, view.state, view.workers) == ("odd", "Created", 0)
    assert summary(view).created == LONG_AGO


@pytest.mark.parametrize(
    "spec",
    [
        7,
        {"runPolicy": "none"},
        {"pytorchReplicaSpecs": ["Worker"]},
        {"pytorchReplicaSpecs": {"Worker": 3}},
        {"pytorchReplicaSpecs": {"Worker": {"replicas": "many"}}},
        {"pytorchReplicaSpecs": {"Worker": {"replicas": {}}}},
    ],
)
def test_a_strange_object_of_an_older_kind_is_shown_too(spec: Any) -> None:
    """Not every cluster's definition says what its fields are; one such job hid all others."""
    view = PYTORCH.view(stored(spec=spec))
    assert (view.name, view.state, summary(view).suspend) == ("train", "Created", False)
    assert PYTORCH.headless(stored(spec=spec)) and view.workers in (0, 1)


def test_digits_that_are_no_count_of_ours_break_nothing() -> None:
    many = "9" * 5000
    labels = {"training.kubeflow.org/replica-index": "9" * 60}
    pod = Pod(metadata=Meta(labels=labels, annotations={a.ATTEMPT: many}))
    assert (pod.index, pod.attempt) == (0, 1)
    again = FoundJob(MPIJOB, stored(metadata={"name": "x", "annotations": {a.RESTARTS: many}}))
    made = lifecycle.successor(Key("a", "x"), again)
    assert made["metadata"]["annotations"] == {a.RESTARTS: "1"}


def test_how_many_attempts_there_are_is_known_of_mpijobs_alone() -> None:
    spec = {"runPolicy": {"backoffLimit": 2}}
    found = [FoundJob(kind, stored(spec=spec)) for kind in (MPIJOB, TRAINJOB, PYTORCH)]
    assert [one.most_attempts for one in found] == [3, 0, 0]


def test_trainjob_in_the_sdk_has_its_own_manifest_and_is_not_sent_as_an_mpijob() -> None:
    job = MPIJob._viewed(_trainjob(), backend=None)  # type: ignore[arg-type]
    assert (job.name, job.workers, job.slots) == ("train", 3, 4)
    assert job.to_dict()["spec"]["trainer"]["numNodes"] == 3
    assert "status" not in job.to_dict()
    with pytest.raises(JobError, match="is a TrainJob"):
        job.create()
