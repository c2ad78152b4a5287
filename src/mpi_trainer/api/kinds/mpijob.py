"""MPIJob, `kubeflow.org/v2beta1`: the fields, exactly as the public API names them.

A value of these types is *structurally* sound: the right fields with the right types. Whether it
makes sense is `validation`; what is meant where nothing was said is `defaults`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from mpi_trainer.api.kinds.conditions import Condition
from mpi_trainer.api.kinds.meta import ApiObject, ApiValue, Int32, Int64
from mpi_trainer.api.kinds.pods import PodTemplate

API_VERSION = "kubeflow.org/v2beta1"
KIND = "MPIJob"

LAUNCHER = "Launcher"
WORKER = "Worker"
OPEN_MPI = "OpenMPI"
IMPLEMENTATIONS = (OPEN_MPI, "Intel", "MPICH")


class SchedulingPolicy(ApiValue, frozen=True):
    min_available: Int32 | None = None
    queue: str | None = None
    min_resources: Mapping[str, str | int | float] | None = None
    priority_class: str | None = None
    schedule_timeout_seconds: Int32 | None = None


class RunPolicy(ApiValue, frozen=True):
    clean_pod_policy: str | None = None
    ttl_seconds_after_finished: Int32 | None = None
    active_deadline_seconds: Int64 | None = None
    backoff_limit: Int32 | None = None
    scheduling_policy: SchedulingPolicy | None = None
    suspend: bool | None = None
    managed_by: str | None = None


class ReplicaSpec(ApiValue, frozen=True):
    replicas: Int32 | None = None
    template: PodTemplate = PodTemplate()
    restart_policy: str | None = None


class MPIJobSpec(ApiValue, frozen=True):
    slots_per_worker: Int32 | None = None
    run_launcher_as_worker: bool | None = None
    run_policy: RunPolicy = RunPolicy()
    mpi_replica_specs: Mapping[str, ReplicaSpec] | None = None
    ssh_auth_mount_path: str | None = None
    launcher_creation_policy: str | None = None
    mpi_implementation: str | None = None


class ReplicaStatus(ApiValue, frozen=True):
    active: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0
    selector: str | None = None
    label_selector: Mapping[str, Any] | None = None


class MPIJobStatus(ApiValue, frozen=True):
    conditions: tuple[Condition, ...] = ()
    replica_statuses: Mapping[str, ReplicaStatus] = {}
    start_time: datetime | None = None
    completion_time: datetime | None = None
    last_reconcile_time: datetime | None = None


class MPIJob(ApiObject, frozen=True):
    api_version: str = API_VERSION
    kind: str = KIND
    spec: MPIJobSpec = MPIJobSpec()
    status: MPIJobStatus = MPIJobStatus()

    @property
    def launcher(self) -> ReplicaSpec:
        """The launcher's part; an empty one where the job has none (then validation refuses it)."""
        return (self.spec.mpi_replica_specs or {}).get(LAUNCHER, ReplicaSpec())

    @property
    def worker(self) -> ReplicaSpec:
        return (self.spec.mpi_replica_specs or {}).get(WORKER, ReplicaSpec(replicas=0))

    @property
    def workers(self) -> int:
        """How many worker pods the job has; zero where only the launcher runs ranks."""
        return self.worker.replicas or 0

    @property
    def slots(self) -> int:
        return 1 if self.spec.slots_per_worker is None else self.spec.slots_per_worker


def to_wire(job: MPIJob) -> dict[str, Any]:
    """The job as plain JSON-like data, with templates as they came."""
    fields: dict[str, Any] = msgspec.to_builtins(job, enc_hook=_encode)
    return {"apiVersion": job.api_version, "kind": job.kind, **fields}


def _encode(value: object) -> object:
    if isinstance(value, PodTemplate):
        return value.content
    raise TypeError(f"no wire form for {type(value).__name__}")
