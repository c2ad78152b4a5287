"""TrainJobs and runtimes to test with: small sound ones, and changes to them as plain data."""

from __future__ import annotations

from typing import Any

from mpi_trainer.api.effective.combine import Effective, effective
from mpi_trainer.api.errors import Path
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml import load
from tests.unit.api.building import changed

API_VERSION = "trainer.kubeflow.org/v1alpha1"
LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"
JOBS: Path = ("spec", "template", "spec", "replicatedJobs")
MPI: Path = ("spec", "mlPolicy", "mpi")
NODES: Path = ("spec", "mlPolicy", "numNodes")


def train_job(*changes: tuple[Path, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": "TrainJob",
        "metadata": {"name": "train", "namespace": "ns"},
        "spec": {"runtimeRef": {"name": "mpi"}},
    }
    return changed(data, changes)


def replicated(job: str, ancestor: str = "", /, **fields: Any) -> dict[str, Any]:
    """A replicated job with one container `node`; `fields` are the container's."""
    labels = {"metadata": {"labels": {LABEL: ancestor}}} if ancestor else {}
    container = {"name": "node", "image": "example.com/train:1", **fields}
    spec = {"template": {"spec": {"containers": [container]}}}
    return {"name": job, "template": {**labels, "spec": spec}}


def runtime(*changes: tuple[Path, Any]) -> dict[str, Any]:
    """An MPI runtime as upstream ships them: `node` first, the launcher a node too."""
    launcher = {
        **replicated("launcher", "trainer"),
        "dependsOn": [{"name": "node", "status": "Ready"}],
    }
    return changed(
        _runtime({"mpi": {"runLauncherAsNode": True}}, replicated("node"), launcher), changes
    )


def torch(*changes: tuple[Path, Any]) -> dict[str, Any]:
    return changed(_runtime({"torch": {}}, replicated("node", "trainer")), changes)


def plain(*changes: tuple[Path, Any]) -> dict[str, Any]:
    return changed(_runtime({}, replicated("node", "trainer")), changes)


def _runtime(policy: dict[str, Any], *jobs: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "mpi"},
        "spec": {
            "mlPolicy": {"numNodes": 1, **policy},
            "template": {"spec": {"replicatedJobs": list(jobs)}},
        },
    }


def patch(job: str, manager: str = "example.com/test", **pod: Any) -> dict[str, Any]:
    """A runtime patch of the pods of one replicated job."""
    change = {"name": job, "template": {"spec": {"template": {"spec": pod}}}}
    spec = {"template": {"spec": {"replicatedJobs": [change]}}}
    return {"manager": manager, "trainingRuntimeSpec": spec}


def loaded(data: dict[str, Any]) -> TrainJob:
    found = load.train_job(data)
    assert not found.errors, found.errors
    assert isinstance(found.value, TrainJob)
    return found.value


def loaded_runtime(data: dict[str, Any]) -> Runtime:
    found = load.runtime(data)
    assert not found.errors, found.errors
    assert isinstance(found.value, Runtime)
    return found.value


def merged(job: dict[str, Any], template: dict[str, Any]) -> Effective:
    return effective(loaded(job), loaded_runtime(template))
