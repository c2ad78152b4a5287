"""What a cluster knows of a job that does not run: the objects, as far as reasons are read in them.

Every part may be missing, because the caller may not see it or the cluster does not have it. An
empty tuple of nodes or quotas therefore means nothing; only what is there counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from mpi_trainer.api.kinds.meta import ApiValue
from mpi_trainer.api.kinds.pod_status import Condition, DetailedPodStatus, condition

Amounts = Mapping[str, str | int | float]
_NONE: Mapping[str, str] = {}
_NOTHING: Amounts = {}


class Meta(ApiValue, frozen=True):
    name: str = ""
    labels: Mapping[str, str] = _NONE
    deletion_timestamp: datetime | None = None


class Resources(ApiValue, frozen=True):
    requests: Amounts = _NOTHING
    limits: Amounts = _NOTHING


class Container(ApiValue, frozen=True):
    name: str = ""
    image: str = ""
    resources: Resources = Resources()


class _Named(ApiValue, frozen=True):
    name: str = ""


class PodSpec(ApiValue, frozen=True):
    node_name: str = ""
    containers: tuple[Container, ...] = ()
    scheduling_gates: tuple[_Named, ...] = ()


class Pod(ApiValue, frozen=True):
    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: DetailedPodStatus = DetailedPodStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    def condition(self, kind: str, status: str) -> Condition | None:
        return condition(self.status.conditions, kind, status)


class ObjectName(ApiValue, frozen=True):
    kind: str = ""
    name: str = ""


class Event(ApiValue, frozen=True):
    involved_object: ObjectName = ObjectName()
    type: str = ""
    reason: str = ""
    message: str = ""


class PodSet(ApiValue, frozen=True):
    """`template` is as the job's user wrote it."""

    name: str = ""
    template: Mapping[str, Any] = {}


class _WorkloadSpec(ApiValue, frozen=True):
    queue_name: str = ""
    active: bool = True
    pod_sets: tuple[PodSet, ...] = ()


class _Admission(ApiValue, frozen=True):
    cluster_queue: str = ""


class _WorkloadStatus(ApiValue, frozen=True):
    conditions: tuple[Condition, ...] = ()
    admission: _Admission = _Admission()


class Workload(ApiValue, frozen=True):
    """Kueue's view of the job."""

    metadata: Meta = Meta()
    spec: _WorkloadSpec = _WorkloadSpec()
    status: _WorkloadStatus = _WorkloadStatus()

    def condition(self, kind: str, status: str) -> Condition | None:
        return condition(self.status.conditions, kind, status)


class _QuotaStatus(ApiValue, frozen=True):
    hard: Amounts = _NOTHING
    used: Amounts = _NOTHING


class Quota(ApiValue, frozen=True):
    metadata: Meta = Meta()
    status: _QuotaStatus = _QuotaStatus()


class _NodeSpec(ApiValue, frozen=True):
    unschedulable: bool = False


class _NodeStatus(ApiValue, frozen=True):
    allocatable: Amounts = _NOTHING
    conditions: tuple[Condition, ...] = ()


class Node(ApiValue, frozen=True):
    metadata: Meta = Meta()
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()


class Evidence(msgspec.Struct, frozen=True):
    """Everything at one moment. `wanted` is how many pods the job is made of."""

    name: str
    wanted: int
    suspended: bool = False
    queue: str = ""
    served: bool = True
    pods: tuple[Pod, ...] = ()
    events: tuple[Event, ...] = ()
    workload: Workload | None = None
    quotas: tuple[Quota, ...] = ()
    nodes: tuple[Node, ...] = ()
