"""What is to be known of a job that does not run, fetched at once, for `diagnose.waiting`.

Only the job's own objects are needed; what lies outside the namespace, or is not the caller's to
see, or does not exist on this cluster, is left out and makes the answer only less exact.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, TypeVar

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.labels import LABEL_QUEUE, LABEL_WORKLOAD_JOB_UID
from mpi_trainer.diagnose.evidence import Event, Evidence, Node, Pod, Quota, Workload
from mpi_trainer.kube import lists
from mpi_trainer.kube.errors import KubeError
from mpi_trainer.kube.resources import EVENTS, NODES, PODS, RESOURCE_QUOTAS, Resource
from mpi_trainer.sdk.backends.backend import JobView, Key
from mpi_trainer.sdk.backends.cluster import observed
from mpi_trainer.sdk.backends.cluster.connections import Home

T = TypeVar("T")
WORKLOADS: Final = tuple(
    Resource("kueue.x-k8s.io", version, "workloads", "Workload")
    for version in ("v1beta2", "v1beta1")
)


def is_waiting(job: JobView) -> bool:
    """Whether it is worth asking: the job neither runs nor has ended."""
    return not job.finished and not c.holds(job.conditions, c.RUNNING)


async def waiting_evidence(home: Home, key: Key, job: JobView) -> Evidence:
    """As much as the caller may see."""
    uid, space = job.uid, key.namespace
    queue = job.labels.get(LABEL_QUEUE, "")
    pods, events, quotas, nodes, workloads = await asyncio.gather(
        _listed(home, PODS, Pod, space, labels=observed.selector(key)),
        _listed(home, EVENTS, Event, space, fields="type=Warning"),
        _listed(home, RESOURCE_QUOTAS, Quota, space),
        _listed(home, NODES, Node),
        _workloads(home, space, f"{LABEL_WORKLOAD_JOB_UID}={uid}") if queue else _none(),
    )
    names = {key.name, *(pod.name for pod in pods)}
    return Evidence(
        name=key.name,
        wanted=job.workers + 1,
        suspended=job.suspend,
        queue=queue,
        served=bool(job.conditions),
        pods=pods,
        events=tuple(e for e in events if e.involved_object.name in names),
        workload=workloads[0] if workloads else None,
        quotas=quotas,
        nodes=nodes,
    )


async def _workloads(home: Home, namespace: str, labels: str) -> tuple[Workload, ...]:
    """By whichever version this Kueue speaks."""
    for resource in WORKLOADS:
        found = await _listed(home, resource, Workload, namespace, labels)
        if found:
            return found
    return ()


async def _listed(
    home: Home,
    resource: Resource,
    kind: type[T],
    namespace: str = "",
    labels: str = "",
    fields: str = "",
) -> tuple[T, ...]:
    try:
        page: Any = await lists.list_all(
            home.client, resource, kind, namespace=namespace, labels=labels, fields=fields
        )
    except KubeError:
        return ()
    return tuple(page.items)


async def _none() -> tuple[Any, ...]:
    return ()
