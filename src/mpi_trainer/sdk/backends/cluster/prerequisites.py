"""What a job names and its cluster does not have, asked before it is submitted.

Each is a warning and no error: it may come later, and then the job runs. What the caller may not
see is left out, and so is what cannot be a name: the API server says what is wrong with it. Nothing
is asked that the job does not name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.pods import PodSpec
from mpi_trainer.api.names import dns1123_subdomain
from mpi_trainer.api.validation.resources import is_device
from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import KubeError, NotFound
from mpi_trainer.kube.resources import CONFIGMAPS, NODES, PERSISTENT_VOLUME_CLAIMS, Resource
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.queues import LOCAL_QUEUES


async def missing(server: ApiServer, job: MPIJob) -> list[str]:
    """A sentence for each."""
    found = []
    for resource, name in dict.fromkeys(_named(job)):
        if dns1123_subdomain(name) is None and not await _exists(
            server, (resource,), job.namespace, name
        ):
            found.append(
                f"{resource.kind} {name} is not found in namespace {job.namespace}: "
                "the pods wait until it is there"
            )
    queue = job.metadata.labels.get(LABEL_QUEUE, "")
    if queue and not await _exists(server, LOCAL_QUEUES, job.namespace, queue):
        found.append(
            f"LocalQueue {queue} is not found in namespace {job.namespace}: "
            "Kueue does not start the job until it is there"
        )
    devices = sorted(set(_devices(job)))
    return [*found, *(await _without_nodes(server, devices) if devices else ())]


def _named(job: MPIJob) -> Iterator[tuple[Resource, str]]:
    for spec in _pods(job):
        for volume in spec.volumes:
            if volume.persistent_volume_claim is not None:
                yield PERSISTENT_VOLUME_CLAIMS, volume.persistent_volume_claim.claim_name
            if volume.config_map is not None and not volume.config_map.optional:
                yield CONFIGMAPS, volume.config_map.name


def _devices(job: MPIJob) -> Iterator[str]:
    for spec in _pods(job):
        for container in spec.containers:
            wanted = {**container.resources.requests, **container.resources.limits}
            yield from (name for name, amount in wanted.items() if is_device(name) and amount)


def _pods(job: MPIJob) -> Iterator[PodSpec]:
    for replica in (job.launcher, job.worker):
        yield replica.template.view.spec


async def _exists(
    server: ApiServer, versions: tuple[Resource, ...], namespace: str, name: str
) -> bool:
    """False only where the server says that there is none, whichever version it serves."""
    for resource in versions:
        try:
            await server.call(requests.get(resource, namespace, name))
        except NotFound as error:
            if error.details.get("name"):
                return False
        except KubeError:
            return True
        else:
            return True
    return True


async def _without_nodes(server: ApiServer, devices: list[str]) -> list[str]:
    try:
        page: dict[str, Any] = await server.call(requests.list_page(NODES, limit=0))
    except KubeError:
        return []
    offered = [node.get("status", {}).get("allocatable") or {} for node in page.get("items") or ()]
    return [
        f"no node of the cluster has {name}: the pods wait for one"
        for name in devices
        if offered and not any(str(one.get(name, "0")) != "0" for one in offered)
    ]
