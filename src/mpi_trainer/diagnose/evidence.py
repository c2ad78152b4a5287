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

Amounts = Mapping[str, str | int | float]
_NONE: Mapping[str, str] = {}
_NOTHING: Amounts = {}


class Meta(ApiValue, frozen=True):
    name: str = ""
    labels: Mapping[str, str] = _NONE
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class Condition(ApiValue, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


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


class _Waiting(ApiValue, frozen=True):
    reason: str = ""
    message: str = ""


class _Terminated(ApiValue, frozen=True):
    exit_code: int = 0
    reason: str = ""


class _State(ApiValue, frozen=True):
    waiting: _Waiting | None = None
    running: Mapping[str, Any] | None = None
    terminated: _Terminated | None = None


class ContainerStatus(ApiValue, frozen=True):
    name: str = ""
    image: str = ""
    ready: bool = False
    restart_count: int = 0
    state: _State = _State()
    last_state: _State = _State()


class PodStatus(ApiValue, frozen=True):
    phase: str = "Pending"
    conditions: tuple[Condition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(ApiValue, frozen=True):
    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    def condition(self, kind: str, status: str) -> Condition | None:
        found = (c for c in self.status.conditions if c.type == kind and c.status == status)
        return next(found, None)


class _About(ApiValue, frozen=True):
    kind: str = ""
    name: str = ""


class Event(ApiValue, frozen=True):
    involved_object: _About = _About()
    type: str = ""
    reason: str = ""
    message: str = ""


class _WorkloadSpec(ApiValue, frozen=True):
    queue_name: str = ""
    active: bool = True


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
        found = (c for c in self.status.conditions if c.type == kind and c.status == status)
        return next(found, None)


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
