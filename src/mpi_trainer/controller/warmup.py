"""One job of each kind, read and rendered before there is any, and a key pair.

The first use of a type takes Python several times as long as all later ones, because what is known
of its fields is worked out then, and the first key loads a library. A controller that says that it
is ready has that behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation import compatibility
from mpi_trainer.api.yaml import load
from mpi_trainer.controller.mpijob import desired as of_mpijob
from mpi_trainer.controller.trainjob import desired as of_trainjob
from mpi_trainer.render.frame import Facts
from mpi_trainer.render.trainjob import snapshots
from mpi_trainer.runtime import key_pairs

Object = Mapping[str, Any]
_TRAINER: Final = "trainer.kubeflow.org/v1alpha1"
_POD: Final = {"spec": {"containers": [{"name": "node", "image": "x", "command": ["mpirun", "x"]}]}}
_META: Final = {"name": "warmup", "namespace": "warmup", "uid": "0"}


def run() -> None:
    """Sends nothing and keeps nothing."""
    job = load.job(_mpijob()).value
    assert isinstance(job, MPIJob)
    msgspec.json.encode(of_mpijob.desired(job, Facts()).children)
    runtime, train_job = load.runtime(_runtime()).value, load.train_job(_trainjob()).value
    assert isinstance(runtime, Runtime)
    assert isinstance(train_job, TrainJob)
    assert not compatibility.errors(train_job, runtime)
    msgspec.json.encode(of_trainjob.desired(train_job, runtime, Facts()).children)
    msgspec.json.encode(snapshots.snapshot(train_job, runtime))
    key_pairs.generate_ssh()


def _mpijob() -> Object:
    replicas = {"Launcher": {"template": _POD}, "Worker": {"replicas": 2, "template": _POD}}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": _META,
        "spec": {"mpiReplicaSpecs": replicas},
    }


def _runtime() -> Object:
    def replicated(name: str, labels: Mapping[str, str]) -> Object:
        job = {"metadata": {"labels": labels}, "spec": {"template": _POD}}
        return {"name": name, "template": job}

    step = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    jobs = [replicated("launcher", step), replicated("node", {})]
    policy = {"mpi": {"numProcPerNode": 1}}
    return {
        "apiVersion": _TRAINER,
        "kind": "TrainingRuntime",
        "metadata": _META,
        "spec": {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": jobs}}},
    }


def _trainjob() -> Object:
    ref = {"name": "warmup", "kind": "TrainingRuntime"}
    return {
        "apiVersion": _TRAINER,
        "kind": "TrainJob",
        "metadata": _META,
        "spec": {"runtimeRef": ref, "trainer": {"numNodes": 2}},
    }
