"""Everything that the API server knows of a job, fetched at once; and why it does not run yet.

What the caller may not see (pods, events, logs, nodes) or what this cluster does not have is left
out: a job's own state is worth having alone, and an answer why it waits is then only less exact.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, TypeVar

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.labels import LABEL_QUEUE, LABEL_WORKLOAD_JOB_UID
from mpi_trainer.decide import history
from mpi_trainer.decide.trainjob import status_annotations
from mpi_trainer.diagnose.evidence import Event, Evidence, Node, Pod, Quota, Workload
from mpi_trainer.diagnose.waiting import why
from mpi_trainer.kube import lists
from mpi_trainer.kube.errors import Forbidden, KubeError
from mpi_trainer.kube.resources import EVENTS, NODES, PODS, RESOURCE_QUOTAS, Resource
from mpi_trainer.sdk.backends.backend import EventInfo, JobDetails, JobView, Key
from mpi_trainer.sdk.backends.cluster import observed
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.find import FoundJob
from mpi_trainer.sdk.backends.cluster.job_logs import pods_of
from mpi_trainer.sdk.backends.cluster.kinds import MPIJOB, Kind
from mpi_trainer.sdk.backends.cluster.progress import log_end

T = TypeVar("T")

WORKLOADS: Final = tuple(
    Resource("kueue.x-k8s.io", version, "workloads", "Workload")
    for version in ("v1beta2", "v1beta1")
)


async def details(server: ApiServer, key: Key, found: FoundJob) -> JobDetails:
    job, kind = found.view, found.kind
    pods, events = await asyncio.gather(_pods(server, key, kind), _events(server, key, found.uid))
    said = await log_end(server, pods)
    return JobDetails(
        job=job,
        pods=tuple(
            observed.pod_info(p) for p in sorted(pods, key=lambda p: (p.role, p.attempt, p.index))
        ),
        ranks=observed.rank_infos(pods),
        events=events,
        progress=said.progress or observed.reported_progress(job.manifest),
        suspicion=said.suspicion,
        waits_for=await _waits_for(server, key, job) if kind is MPIJOB else _cause(job),
        attempts=history.read(job.annotations),
    )


def _cause(job: JobView) -> str:
    """What a TrainJob's controller says that it waits for."""
    notes = status_annotations.read(job.annotations)
    return notes.cause if notes.phase == status_annotations.PENDING else ""


async def _waits_for(server: ApiServer, key: Key, job: JobView) -> str:
    """Why it does not run, by what can be seen; else what its controller says."""
    said = observed.waits_for(job.conditions)
    return why(await _evidence(server, key, job)) or said if _is_waiting(job) else said


async def _pods(server: ApiServer, key: Key, kind: Kind) -> tuple[observed.Pod, ...]:
    try:
        return await pods_of(server, key, kind)
    except Forbidden:
        return ()


async def _events(server: ApiServer, key: Key, uid: str) -> tuple[EventInfo, ...]:
    about = f"involvedObject.uid={uid}"
    try:
        page = await lists.list_all(
            server.client, EVENTS, observed.ClusterEvent, namespace=key.namespace, fields=about
        )
    except Forbidden:
        return ()
    return observed.event_infos(page.items)


def _is_waiting(job: JobView) -> bool:
    """Whether it is worth asking: the job neither runs nor has ended."""
    return not job.finished and not c.holds(job.conditions, c.RUNNING)


async def _evidence(server: ApiServer, key: Key, job: JobView) -> Evidence:
    """As much as the caller may see."""
    uid, space = job.uid, key.namespace
    queue = job.labels.get(LABEL_QUEUE, "")
    pods, events, quotas, nodes, workloads = await asyncio.gather(
        _listed(server, PODS, Pod, space, labels=observed.selector(key)),
        _listed(server, EVENTS, Event, space, fields="type=Warning"),
        _listed(server, RESOURCE_QUOTAS, Quota, space),
        _listed(server, NODES, Node),
        workloads_of(server, space, uid) if queue else _none(),
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


async def workloads_of(server: ApiServer, namespace: str, uid: str) -> tuple[Workload, ...]:
    """Kueue's of the job with this uid, by whichever version this Kueue speaks."""
    labels = f"{LABEL_WORKLOAD_JOB_UID}={uid}"
    for resource in WORKLOADS:
        found = await _listed(server, resource, Workload, namespace, labels)
        if found:
            return found
    return ()


async def _listed(
    server: ApiServer,
    resource: Resource,
    kind: type[T],
    namespace: str = "",
    labels: str = "",
    fields: str = "",
) -> tuple[T, ...]:
    try:
        page: Any = await lists.list_all(
            server.client, resource, kind, namespace=namespace, labels=labels, fields=fields
        )
    except KubeError:
        return ()
    return tuple(page.items)


async def _none() -> tuple[Any, ...]:
    return ()
