"""MPIJob as older versions of the public API had it: `kubeflow.org/v1`, `v1alpha2` and `v1alpha1`.

Fields that only some of v1, v1alpha2 and v2beta1 had are taken in all of them: what was stored
under one version was often written for the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpi_trainer.api.kinds.meta import ApiObject, ApiValue, Int32, Int64
from mpi_trainer.api.kinds.mpijob import ReplicaSpec, RunPolicy
from mpi_trainer.api.kinds.pods import PodTemplate

V1 = "kubeflow.org/v1"
V1ALPHA2 = "kubeflow.org/v1alpha2"
V1ALPHA1 = "kubeflow.org/v1alpha1"
VERSIONS = (V1, V1ALPHA2, V1ALPHA1)


class V1Spec(ApiValue, frozen=True):
    slots_per_worker: Int32 | None = None
    clean_pod_policy: str | None = None
    backoff_limit: Int32 | None = None
    active_deadline_seconds: Int64 | None = None
    main_container: str | None = None
    mpi_distribution: str | None = None
    run_policy: RunPolicy = RunPolicy()
    mpi_replica_specs: Mapping[str, ReplicaSpec] | None = None
    mpi_implementation: str | None = None
    ssh_auth_mount_path: str | None = None
    launcher_creation_policy: str | None = None
    run_launcher_as_worker: bool | None = None


class V1Job(ApiObject, frozen=True):
    api_version: str = V1
    kind: str = "MPIJob"
    spec: V1Spec = V1Spec()
    status: Mapping[str, Any] | None = None


class V1Alpha1Spec(ApiValue, frozen=True):
    gpus: Int32 | None = None
    gpus_per_node: Int32 | None = None
    processing_units: Int32 | None = None
    processing_units_per_node: Int32 | None = None
    processing_resource_type: str | None = None
    slots_per_worker: Int32 | None = None
    replicas: Int32 | None = None
    launcher_on_master: bool | None = None
    backoff_limit: Int32 | None = None
    active_deadline_seconds: Int64 | None = None
    clean_pod_policy: str | None = None
    main_container: str | None = None
    mpi_distribution: str | None = None
    template: PodTemplate = PodTemplate()


class V1Alpha1Job(ApiObject, frozen=True):
    api_version: str = V1ALPHA1
    kind: str = "MPIJob"
    spec: V1Alpha1Spec = V1Alpha1Spec()
    status: Mapping[str, Any] | None = None
