"""What a list says of jobs of every kind, as they are stored."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mpi_trainer.api.kinds.annotations import CREATORS, USER
from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.sdk.backends.backend import JobSummary
from mpi_trainer.sdk.backends.cluster import observed
from mpi_trainer.sdk.backends.cluster.kinds import KINDS, MPIJOB, TRAINJOB, Kind
from mpi_trainer.sdk.backends.job_facts import unversioned

META = {
    "name": "a",
    "namespace": "team",
    "uid": "u",
    "resourceVersion": "7",
    "labels": {LABEL_QUEUE: "fast"},
    "annotations": {USER: "ann"},
    "creationTimestamp": "2026-01-01T00:00:00Z",
}
Object = dict[str, Any]


def pod(**limits: Any) -> Object:
    return {"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}}


def mpijob(launcher: Any, worker: Any, workers: Any = 3) -> Object:
    replicas = {
        "Launcher": {"template": launcher},
        "Worker": {"replicas": workers, "template": worker},
    }
    spec = {"runPolicy": {"suspend": True}, "mpiReplicaSpecs": replicas}
    return {"metadata": META, "spec": spec}


def listed(stored: Object) -> JobSummary:
    """As the quick way reads it out of a list."""
    return observed.summary(msgspec.json.decode(msgspec.json.encode(stored), type=observed.Listed))


def viewed(stored: Object, kind: Kind = MPIJOB) -> JobSummary:
    return observed.view_summary(kind.view(stored))


def test_both_ways_of_reading_an_mpijob_say_the_same() -> None:
    stored = mpijob(pod(**{"nvidia.com/gpu": "1", "cpu": 4}), pod(**{"nvidia.com/gpu": 2}))
    found = listed(stored)
    assert found == viewed(stored)
    assert (found.gpus, found.queue, found.owner) == (7, "fast", "ann")
    assert (found.uid, found.resource_version, found.suspend) == ("u", "7", True)


@pytest.mark.parametrize(
    ("worker", "gpus"),
    [
        (pod(**{"amd.com/gpu": 1}), 3),
        (pod(**{"nvidia.com/mig-1g.5gb": 2}), 6),
        (pod(cpu=8, memory="1Gi"), 0),
        (pod(**{"nvidia.com/gpu": "many"}), 0),
        (pod(**{"nvidia.com/gpu": -1}), 0),
        ({"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": 1}}}]}}, 3),
        ({"spec": {"containers": {"nvidia.com/gpu": 1}}}, 0),
        ({"spec": {"containers": [None, {"resources": {"limits": ["nvidia.com/gpu"]}}]}}, 0),
        ({"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": None}}}]}}, 0),
        ({"spec": None, "x": "nvidia.com/gpu"}, 0),
    ],
)
def test_gpus_are_counted_as_far_as_they_are_written_soundly(worker: Any, gpus: int) -> None:
    stored = mpijob({}, worker)
    assert listed(stored).gpus == viewed(stored).gpus == gpus


def test_a_trainjob_and_an_older_kind_say_the_same_things() -> None:
    trainer = {"numNodes": 4, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}}
    spec = {"runtimeRef": {"name": "torch"}, "trainer": trainer, "suspend": True}
    train = viewed({"metadata": META, "spec": spec}, TRAINJOB)
    assert (train.gpus, train.runtime, train.queue, train.owner) == (32, "torch", "fast", "ann")
    older = next(one for one in KINDS if one.resource.kind == "PyTorchJob")
    replicas = {
        "Master": {"template": pod(**{"nvidia.com/gpu": 1})},
        "Worker": {"replicas": 2, "template": pod(**{"nvidia.com/gpu": 1})},
    }
    torch = viewed({"metadata": META, "spec": {"pytorchReplicaSpecs": replicas}}, older)
    assert (torch.kind, torch.gpus, torch.runtime) == ("PyTorchJob", 3, "")


def test_an_owner_that_is_a_whole_book_is_cut() -> None:
    """Anybody may write the annotation, and every list and facet has it."""
    book = dict.fromkeys(CREATORS, "x" * 200000)
    stored = mpijob({}, {}) | {"metadata": META | {"annotations": book}}
    assert len(listed(stored).owner) == len(viewed(stored).owner) == 256


def test_another_version_alone_changes_nothing_that_a_list_shows() -> None:
    one = viewed(mpijob({}, {}))
    other = msgspec.structs.replace(one, resource_version="8")
    assert one != other and unversioned(one) == unversioned(other)
