"""TrainJob, `trainer.kubeflow.org/v1alpha1`: the fields, exactly as the public API names them.

A job names a runtime and says what differs from it; `effective` puts the two together. As with
MPIJob, a value of these types is structurally sound and no more. What only passes through us on
its way into a pod (variables, volumes, resources …) is kept as it came.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from mpi_trainer.api.kinds.meta import ApiObject, ApiValue, Int32, Int64, ObjectMeta

GROUP = "trainer.kubeflow.org"
API_VERSION = f"{GROUP}/v1alpha1"
KIND = "TrainJob"

SUSPENDED = "Suspended"
COMPLETE = "Complete"
FAILED = "Failed"

Raw = Mapping[str, Any]


class RuntimeRef(ApiValue, frozen=True):
    name: str = ""
    api_group: str | None = None
    kind: str | None = None


class SecretRef(ApiValue, frozen=True):
    name: str = ""


class Source(ApiValue, frozen=True):
    """A dataset or a model to fetch before the job starts."""

    storage_uri: str | None = None
    env: tuple[Raw, ...] = ()
    secret_ref: SecretRef | None = None


class Initializer(ApiValue, frozen=True):
    dataset: Source | None = None
    model: Source | None = None


class Trainer(ApiValue, frozen=True):
    image: str | None = None
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    env: tuple[Raw, ...] = ()
    num_nodes: Int32 | None = None
    resources_per_node: Raw | None = None
    num_proc_per_node: Int32 | None = None


class ContainerPatch(ApiValue, frozen=True):
    name: str = ""
    env: tuple[Raw, ...] = ()
    volume_mounts: tuple[Raw, ...] = ()
    security_context: Raw | None = None


class PodSpecPatch(ApiValue, frozen=True):
    service_account_name: str | None = None
    volumes: tuple[Raw, ...] = ()
    init_containers: tuple[ContainerPatch, ...] = ()
    containers: tuple[ContainerPatch, ...] = ()
    image_pull_secrets: tuple[Raw, ...] = ()
    security_context: Raw | None = None
    node_selector: Mapping[str, str] = {}
    affinity: Raw | None = None
    tolerations: tuple[Raw, ...] = ()
    scheduling_gates: tuple[Raw, ...] = ()
    termination_grace_period_seconds: Int64 | None = None


class PodTemplatePatch(ApiValue, frozen=True):
    metadata: ObjectMeta | None = None
    spec: PodSpecPatch | None = None


class JobSpecPatch(ApiValue, frozen=True):
    template: PodTemplatePatch | None = None


class JobTemplatePatch(ApiValue, frozen=True):
    metadata: ObjectMeta | None = None
    spec: JobSpecPatch | None = None


class ReplicatedJobPatch(ApiValue, frozen=True):
    name: str = ""
    template: JobTemplatePatch | None = None

    @property
    def pod(self) -> PodSpecPatch | None:
        """What it changes in the pods' spec; None where it does not reach that far."""
        spec = self.template.spec if self.template else None
        return spec.template.spec if spec and spec.template else None


class JobSetSpecPatch(ApiValue, frozen=True):
    replicated_jobs: tuple[ReplicatedJobPatch, ...] = ()


class JobSetPatch(ApiValue, frozen=True):
    metadata: ObjectMeta | None = None
    spec: JobSetSpecPatch | None = None


class RuntimeSpecPatch(ApiValue, frozen=True):
    template: JobSetPatch | None = None


class RuntimePatch(ApiValue, frozen=True):
    """One manager's changes to the runtime, for this job only. Kueue's may be empty."""

    manager: str = ""
    time: datetime | None = None
    training_runtime_spec: RuntimeSpecPatch | None = None

    @property
    def template(self) -> JobSetPatch:
        spec = self.training_runtime_spec
        return (spec.template if spec else None) or JobSetPatch()

    @property
    def replicated_jobs(self) -> tuple[ReplicatedJobPatch, ...]:
        return self.template.spec.replicated_jobs if self.template.spec else ()


class TrainJobSpec(ApiValue, frozen=True):
    runtime_ref: RuntimeRef = RuntimeRef()
    initializer: Initializer | None = None
    trainer: Trainer | None = None
    runtime_patches: tuple[RuntimePatch, ...] = ()
    suspend: bool | None = None
    active_deadline_seconds: Int64 | None = None
    managed_by: str | None = None


class TrainJobCondition(ApiValue, frozen=True, gc=False):
    """As Kubernetes defines it for new kinds; MPIJob's has an update time instead."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: Int64 | None = None


class ReplicatedJobStatus(ApiValue, frozen=True, gc=False, omit_defaults=False):
    """Child Jobs, not pods, of one replicated job. The API requires all counts, zeros too."""

    name: str = ""
    ready: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0
    active: Int32 = 0
    suspended: Int32 = 0


class Metric(ApiValue, frozen=True):
    name: str = ""
    value: str = ""


class TrainerStatus(ApiValue, frozen=True):
    progress_percentage: Int32 | None = None
    estimated_remaining_seconds: Int32 | None = None
    metrics: tuple[Metric, ...] = ()
    last_updated_time: datetime | None = None


class TrainJobStatus(ApiValue, frozen=True):
    conditions: tuple[TrainJobCondition, ...] = ()
    jobs_status: tuple[ReplicatedJobStatus, ...] = ()
    trainer_status: TrainerStatus | None = None


class TrainJob(ApiObject, frozen=True):
    api_version: str = API_VERSION
    kind: str = KIND
    spec: TrainJobSpec = TrainJobSpec()
    status: TrainJobStatus = TrainJobStatus()

    @property
    def trainer(self) -> Trainer:
        """What the job sets for its nodes; empty where it leaves all to the runtime."""
        return self.spec.trainer or Trainer()


def to_wire(job: TrainJob) -> dict[str, Any]:
    """The job as plain JSON-like data."""
    fields: dict[str, Any] = msgspec.to_builtins(job)
    return {"apiVersion": job.api_version, "kind": job.kind, **fields}
