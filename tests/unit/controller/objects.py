"""Objects of a job in a few words, as an API server would return them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, MPIJob, MPIJobSpec, ReplicaSpec
from mpi_trainer.controller.objects import Job, Pod

BORN = datetime(2026, 3, 1, 12, tzinfo=UTC)
ATTEMPT = "mpi-trainer.opendatahub.io/attempt"
ROLE = "training.kubeflow.org/job-role"


def mpijob(workers: int = 2) -> MPIJob:
    return MPIJob(
        metadata=ObjectMeta(name="pi", namespace="lab", uid="job", creation_timestamp=BORN),
        spec=MPIJobSpec(
            mpi_replica_specs={
                LAUNCHER: ReplicaSpec(replicas=1),
                WORKER: ReplicaSpec(replicas=workers),
            }
        ),
    )


def owner(kind: str, name: str, uid: str) -> dict[str, Any]:
    group = {"MPIJob": "kubeflow.org/v2beta1", "Job": "batch/v1"}[kind]
    return {"apiVersion": group, "kind": kind, "name": name, "uid": uid, "controller": True}


def worker(index: int = 0, phase: str = "Running", **more: Any) -> Pod:
    name = f"pi-worker-{index}"
    return pod(name, "worker", phase, owner("MPIJob", "pi", more.pop("owner", "job")), **more)


def launcher(phase: str = "Running", **more: Any) -> Pod:
    name = more.pop("name", "pi-launcher-x")
    return pod(name, "launcher", phase, owner("Job", "pi-launcher", "batch"), **more)


def pod(name: str, role: str, phase: str, holder: dict[str, Any], **more: Any) -> Pod:
    annotations = {ATTEMPT: str(more.pop("attempt", 1)), **more.pop("annotations", {})}
    meta = {
        "name": name,
        "namespace": "lab",
        "uid": f"uid-{name}",
        "labels": {ROLE: role},
        "annotations": annotations,
        "ownerReferences": [holder],
        "creationTimestamp": "2026-03-01T12:00:05Z",
        **more.pop("metadata", {}),
    }
    spec = {"nodeName": more.pop("node", "n1"), "containers": [{"name": "main"}]}
    return msgspec.convert(
        {"metadata": meta, "spec": spec, "status": {"phase": phase, **more}}, Pod
    )


def batch_job(uid: str = "batch", holder: str = "job", attempt: int = 1, **more: Any) -> Job:
    meta = {
        "name": "pi-launcher",
        "namespace": "lab",
        "uid": uid,
        "annotations": {ATTEMPT: str(attempt)},
        "ownerReferences": [owner("MPIJob", "pi", holder)],
        **more.pop("metadata", {}),
    }
    return msgspec.convert({"metadata": meta, "status": more}, Job)


def ended(code: int, name: str = "main", **more: Any) -> list[dict[str, Any]]:
    terminated = {"exitCode": code, "reason": "Error" if code else "Completed", **more}
    return [{"name": name, "state": {"terminated": terminated}}]
