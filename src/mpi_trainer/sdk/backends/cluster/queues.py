"""Kueue's queues of a namespace: how many jobs wait, where, and what their cluster's queue has.

The numbers of ClusterQueues and the places of jobs (Kueue's visibility API) are closed to many, and
not served everywhere: what cannot be read is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from mpi_trainer.api.kinds.meta import ApiValue
from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import ApiError, KubeError, NotFound
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.resources import Resource, segment
from mpi_trainer.sdk.backends.backend import QueueInfo, QueueResource, WaitingJob
from mpi_trainer.sdk.backends.cluster.choices import listed
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.observed import Meta

VERSIONS: Final = ("v1beta2", "v1beta1")
MOST_PLACES: Final = 1000
SECONDS: Final = 5.0
LOCAL_QUEUES: Final = tuple(
    Resource("kueue.x-k8s.io", version, "localqueues", "LocalQueue") for version in VERSIONS
)
CLUSTER_QUEUES: Final = tuple(
    Resource("kueue.x-k8s.io", version, "clusterqueues", "ClusterQueue", namespaced=False)
    for version in VERSIONS
)
_VISIBILITY: Final = "/apis/visibility.kueue.x-k8s.io"


class _QueueSpec(ApiValue, frozen=True):
    cluster_queue: str = ""


class _QueueStatus(ApiValue, frozen=True):
    pending_workloads: int = 0
    admitted_workloads: int = 0


class _Queue(ApiValue, frozen=True):
    metadata: Meta = Meta()
    spec: _QueueSpec = _QueueSpec()
    status: _QueueStatus = _QueueStatus()


class _Amount(ApiValue, frozen=True):
    name: str = ""
    nominal_quota: str | int | float = 0
    total: str | int | float = 0


class _Flavor(ApiValue, frozen=True):
    name: str = ""
    resources: tuple[_Amount, ...] = ()


class _Group(ApiValue, frozen=True):
    flavors: tuple[_Flavor, ...] = ()


class _ClusterSpec(ApiValue, frozen=True):
    resource_groups: tuple[_Group, ...] = ()


class _ClusterStatus(ApiValue, frozen=True):
    pending_workloads: int = 0
    flavors_usage: tuple[_Flavor, ...] = ()


class ClusterQueue(ApiValue, frozen=True):
    spec: _ClusterSpec = _ClusterSpec()
    status: _ClusterStatus = _ClusterStatus()

    def resources(self) -> Iterator[QueueResource]:
        used = {
            (flavor.name, one.name): str(one.total)
            for flavor in self.status.flavors_usage
            for one in flavor.resources
        }
        for flavor in (each for group in self.spec.resource_groups for each in group.flavors):
            for one in flavor.resources:
                amount = used.get((flavor.name, one.name), "0")
                yield QueueResource(flavor.name, one.name, str(one.nominal_quota), amount)


class _Owner(ApiValue, frozen=True):
    kind: str = ""
    name: str = ""


class _PendingMeta(ApiValue, frozen=True):
    owner_references: tuple[_Owner, ...] = ()


class Pending(ApiValue, frozen=True):
    metadata: _PendingMeta = _PendingMeta()
    priority: int = 0
    position_in_cluster_queue: int = 0
    position_in_local_queue: int = 0

    @property
    def place(self) -> WaitingJob | None:
        """Counted from 1, as people do; None for what no job owns."""
        owner = next(iter(self.metadata.owner_references), None)
        if owner is None:
            return None
        positions = self.position_in_local_queue + 1, self.position_in_cluster_queue + 1
        return WaitingJob(owner.kind, owner.name, *positions, self.priority)


class PendingList(ApiValue, frozen=True):
    items: tuple[Pending, ...] = ()


async def queues(server: ApiServer, namespace: str) -> list[QueueInfo]:
    """By whichever version this Kueue serves."""
    for resource in LOCAL_QUEUES:
        found = await listed(server, resource, _Queue, namespace)
        if found is not None:
            whole = await asyncio.gather(*(_whole(server, one) for one in found))
            return sorted(whole, key=lambda one: one.name)
    return []


async def _whole(server: ApiServer, found: _Queue) -> QueueInfo:
    name = found.spec.cluster_queue
    behind, waiting = await asyncio.gather(_cluster_queue(server, name), _waiting(server, found))
    return QueueInfo(
        namespace=found.metadata.namespace,
        name=found.metadata.name,
        cluster_queue=name,
        pending=found.status.pending_workloads,
        admitted=found.status.admitted_workloads,
        resources=None if behind is None else tuple(behind.resources()),
        cluster_pending=None if behind is None else behind.status.pending_workloads,
        waiting=waiting,
    )


async def _cluster_queue(server: ApiServer, name: str) -> ClusterQueue | None:
    for resource in CLUSTER_QUEUES if name else ():
        try:
            found: ClusterQueue = await server.call(requests.get(resource, "", name), ClusterQueue)
        except NotFound:
            continue
        except ApiError:
            return None
        return found
    return None


async def _waiting(server: ApiServer, found: _Queue) -> tuple[WaitingJob, ...] | None:
    """Where jobs stand; first come first. None where nobody says it."""
    meta = found.metadata
    if not found.status.pending_workloads:
        return ()
    for version in VERSIONS:
        root = f"{_VISIBILITY}/{version}/namespaces/{segment(meta.namespace)}"
        path = f"{root}/localqueues/{segment(meta.name)}/pendingworkloads"
        asked = Request("GET", path, (("limit", str(MOST_PLACES)),), tries=1, timeout=SECONDS)
        try:
            answer: PendingList = await server.client.call(asked, PendingList)
        except NotFound:
            continue
        except KubeError:
            return None
        places = (one.place for one in answer.items)
        return tuple(one for one in places if one is not None)
    return None
