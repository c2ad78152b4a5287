"""What a new job can choose from on a cluster: namespaces, runtimes, volumes; what quotas leave.

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
    RESOURCE_QUOTAS,
    SECRETS,
    TRAINING_RUNTIMES,
    Resource,
)
from mpi_trainer.sdk.backends.backend import Project, QuotaInfo
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.namespace_limits import ENFORCED
from mpi_trainer.sdk.backends.cluster.observed import Meta
from mpi_trainer.sdk.errors import VolumeNotFound

T = TypeVar("T")
Amounts = Mapping[str, str | int | float]
_NOTHING: Final[Amounts] = {}
_CONNECTION: Final = ("opendatahub.io/connection-type", "opendatahub.io/connection-type-ref")
_USER_IDS: Final = "openshift.io/sa.scc.uid-range"
_DISPLAY_NAME: Final = "openshift.io/display-name"
_NAMES_SHOWN: Final = 10
# Of those OpenShift lists to everybody what they may see, and to few all namespaces.
PROJECTS: Final = Resource("project.openshift.io", "v1", "projects", "Project", namespaced=False)
SELF: Final = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)


class _Named(ApiValue, frozen=True):
    metadata: Meta = Meta()


class _QuotaSpec(ApiValue, frozen=True):
    hard: Amounts = _NOTHING


class _QuotaStatus(ApiValue, frozen=True):
    hard: Amounts = _NOTHING
    used: Amounts = _NOTHING


class _Quota(ApiValue, frozen=True):
    metadata: Meta = Meta()
    spec: _QuotaSpec = _QuotaSpec()
    status: _QuotaStatus = _QuotaStatus()


async def user(server: ApiServer) -> str:
    """As the API server knows the caller; empty where it is too old to say."""
    body = {"apiVersion": SELF.api_version, "kind": SELF.kind}
    try:
        found = await server.call(requests.create(SELF, "", body))
    except (NotFound, Forbidden):
        return ""
    return str(found["status"]["userInfo"].get("username") or "")


async def projects(server: ApiServer, own: str) -> list[Project]:
    """`own` where the caller may list neither projects nor namespaces."""
    for resource in (PROJECTS, NAMESPACES):
        found = await listed(server, resource, _Named)
        if found is not None:
            made = (_project(one.metadata) for one in found)
            return sorted(made, key=lambda one: one.name)
    return [Project(own)]


def _project(meta: Meta) -> Project:
    return Project(meta.name, meta.annotations.get(_DISPLAY_NAME, ""))


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
    own = await listed(server, TRAINING_RUNTIMES, dict[str, Any], namespace) or ()
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
        there = await listed(server, PERSISTENT_VOLUME_CLAIMS, _Named, namespace) or ()
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


async def quotas(server: ApiServer, namespace: str) -> list[QuotaInfo]:
    """Those of the namespace, resource by resource."""
    found = await _list(server, RESOURCE_QUOTAS, _Quota, namespace)
    return [
        QuotaInfo(one.metadata.name, name, str(hard), str(one.status.used.get(name, "0")))
        for one in sorted(found, key=lambda each: each.metadata.name)
        for name, hard in sorted({**one.spec.hard, **one.status.hard}.items())
    ]


async def listed(
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
