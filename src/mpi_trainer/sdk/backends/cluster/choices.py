"""What a new job can choose from on a cluster: namespaces, runtimes, volumes and queues.

What the cluster does not serve, or the caller may not list, is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from mpi_trainer.api.kinds.meta import ApiValue
from mpi_trainer.api.kinds.runtime import NAMESPACED, Runtime
from mpi_trainer.api.kinds.trainjob import RuntimeRef
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.kube import lists, requests
from mpi_trainer.kube.errors import ApiError, Forbidden, NotFound
from mpi_trainer.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    SECRETS,
    TRAINING_RUNTIMES,
    Resource,
)
from mpi_trainer.sdk.backends.backend import QueueInfo
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.namespace_limits import ENFORCED
from mpi_trainer.sdk.backends.cluster.observed import Meta
from mpi_trainer.sdk.errors import VolumeNotFound

T = TypeVar("T")
_CONNECTION: Final = ("opendatahub.io/connection-type", "opendatahub.io/connection-type-ref")
_USER_IDS: Final = "openshift.io/sa.scc.uid-range"
_NAMES_SHOWN: Final = 10
# OpenShift's users list the projects that they may see, and not namespaces.
PROJECTS: Final = Resource("project.openshift.io", "v1", "projects", "Project", namespaced=False)
LOCAL_QUEUES: Final = tuple(
    Resource("kueue.x-k8s.io", version, "localqueues", "LocalQueue")
    for version in ("v1beta2", "v1beta1")
)


class _Named(ApiValue, frozen=True):
    metadata: Meta = Meta()


class _QueueSpec(ApiValue, frozen=True):
    cluster_queue: str = ""


class _QueueStatus(ApiValue, frozen=True):
    pending_workloads: int = 0
    admitted_workloads: int = 0


class _Queue(ApiValue, frozen=True):
    metadata: Meta = Meta()
    spec: _QueueSpec = _QueueSpec()
    status: _QueueStatus = _QueueStatus()


async def namespaces(server: ApiServer, own: str) -> list[str]:
    """`own` where the caller may list neither namespaces nor projects."""
    for resource in (NAMESPACES, PROJECTS):
        found = await _listed(server, resource, _Named)
        if found is not None:
            return sorted(one.metadata.name for one in found)
    return [own]


async def enforces_restricted(server: ApiServer, namespace: str) -> bool:
    """Not where OpenShift's security context constraints fill in what a pod does not say."""
    try:
        found = await server.call(requests.get(NAMESPACES, "", namespace), _Named)
    except (NotFound, Forbidden):
        return False
    meta: Meta = found.metadata
    return meta.labels.get(ENFORCED) == "restricted" and _USER_IDS not in meta.annotations


async def runtimes(server: ApiServer, namespace: str) -> list[Runtime]:
    """The cluster's must be there to be listed; those of a namespace are rare and often closed."""
    own = await _listed(server, TRAINING_RUNTIMES, dict[str, Any], namespace) or ()
    common = await _list(server, CLUSTER_TRAINING_RUNTIMES, dict[str, Any])
    found = [
        decode(Runtime, {**item, "apiVersion": of.api_version, "kind": of.kind}).value
        for of, items in ((TRAINING_RUNTIMES, own), (CLUSTER_TRAINING_RUNTIMES, common))
        for item in items
    ]
    return sorted(found, key=lambda one: (one.name, one.kind != TRAINING_RUNTIMES.kind))


async def runtime(server: ApiServer, namespace: str, ref: RuntimeRef) -> Runtime:
    """The one that a TrainJob of this namespace names."""
    own = ref.kind == NAMESPACED
    resource = TRAINING_RUNTIMES if own else CLUSTER_TRAINING_RUNTIMES
    request = requests.get(resource, namespace if own else "", ref.name)
    return decode(Runtime, await server.call(request)).value


async def volume(server: ApiServer, name: str, namespace: str) -> dict[str, Any]:
    """Who may not look is believed that it is a claim: its pods will tell."""
    claim = {"persistentVolumeClaim": {"claimName": name}}
    try:
        await server.call(requests.get(PERSISTENT_VOLUME_CLAIMS, namespace, name), None)
    except Forbidden:
        return claim
    except NotFound as error:
        if await _is_connection(server, name, namespace):
            return {"secret": {"secretName": name}}
        there = await _listed(server, PERSISTENT_VOLUME_CLAIMS, _Named, namespace) or ()
        names = sorted(one.metadata.name for one in there)
        shown = ", ".join(names[:_NAMES_SHOWN]) + (", …" if names[_NAMES_SHOWN:] else "")
        raise VolumeNotFound(
            f"volume {name} not found: there is no PersistentVolumeClaim and no data connection "
            f"of that name in namespace {namespace}",
            f"Claims of the namespace: {shown}." if names else "Create it, or name another.",
        ) from error
    return claim


async def _is_connection(server: ApiServer, name: str, namespace: str) -> bool:
    """A Secret that OpenShift AI shows as a data connection; others are nobody's to mount."""
    try:
        found = await server.call(requests.get(SECRETS, namespace, name), _Named)
    except (NotFound, Forbidden):
        return False
    notes: Mapping[str, str] = found.metadata.annotations
    return any(mark in notes for mark in _CONNECTION)


async def queues(server: ApiServer, namespace: str) -> list[QueueInfo]:
    """By whichever version this Kueue serves."""
    for resource in LOCAL_QUEUES:
        found = await _listed(server, resource, _Queue, namespace)
        if found is not None:
            return sorted((_queue(one) for one in found), key=lambda one: one.name)
    return []


def _queue(found: _Queue) -> QueueInfo:
    return QueueInfo(
        namespace=found.metadata.namespace,
        name=found.metadata.name,
        cluster_queue=found.spec.cluster_queue,
        pending=found.status.pending_workloads,
        admitted=found.status.admitted_workloads,
    )


async def _listed(
    server: ApiServer, resource: Resource, kind: type[T], namespace: str = ""
) -> tuple[T, ...] | None:
    """None where it is not served, or not for us."""
    try:
        return await _list(server, resource, kind, namespace)
    except (NotFound, Forbidden):
        return None


async def _list(
    server: ApiServer, resource: Resource, kind: type[T], namespace: str = ""
) -> tuple[T, ...]:
    async def once() -> lists.Page[T]:
        return await lists.list_all(server.client, resource, kind, namespace=namespace)

    try:
        return (await server.outages.retried(once, again=True)).items
    except ApiError:
        server.outages.note_answer()
        raise
