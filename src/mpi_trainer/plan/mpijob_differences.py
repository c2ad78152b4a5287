"""What an MPIJob in a file and a cluster disagree about.

Pods that a finished or suspended job no longer has are no difference, and neither is that Kueue
suspends a queue's job.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mpi_trainer.api.kinds import conditions
from mpi_trainer.api.kinds.labels import LABEL_JOB, LABEL_ROLE
from mpi_trainer.api.kinds.mpijob import MPIJob, to_wire
from mpi_trainer.api.yaml import load
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.resources import CONFIGMAPS, JOBS, MPIJOBS, PODS, SERVICES
from mpi_trainer.layout.hosts import launcher_name
from mpi_trainer.plan.comparison import (
    CHANGED,
    NEW,
    SURPLUS,
    Difference,
    changes_both_ways,
    child_differences,
    name_of,
    queued,
    read,
)
from mpi_trainer.plan.objects import planned_mpijob
from mpi_trainer.render import names
from mpi_trainer.render.drift import Change
from mpi_trainer.render.frame import Object

replace = msgspec.structs.replace


class _Live(msgspec.Struct, frozen=True):
    """The job's objects on the cluster; None for what is not there."""

    job: Object
    service: Object | None
    config_map: Object | None
    launcher_job: Object | None
    workers: dict[str, Object]


async def mpijob_differences(client: Client, job: MPIJob, domain: str) -> list[Difference]:
    """Nothing where applying the file would change nothing."""
    live = await read(client, MPIJOBS, job.namespace, job.name)
    if live is None:
        planned = planned_mpijob(job, domain)
        own = (made for made in planned if made is not planned.scripts)
        kinds = [(job.kind, job.name), *((made["kind"], name_of(made)) for made in own)]
        return [Difference(kind.lower(), name, NEW) for kind, name in kinds]
    return [*_differences(job, domain, await _children_of(client, live))]


async def _children_of(client: Client, job: Object) -> _Live:
    namespace, name = str(job["metadata"]["namespace"]), name_of(job)
    labels = f"{LABEL_JOB}={name},{LABEL_ROLE}=worker"
    listed: Object = await client.call(requests.list_page(PODS, namespace, labels, limit=0))
    return _Live(
        job,
        await read(client, SERVICES, namespace, names.service(name)),
        await read(client, CONFIGMAPS, namespace, names.config_map(name)),
        await read(client, JOBS, namespace, launcher_name(name)),
        # Items of a list do not say what they are.
        {name_of(pod): {"apiVersion": "v1", "kind": "Pod", **pod} for pod in listed["items"] or ()},
    )


def _differences(job: MPIJob, domain: str, live: _Live) -> Iterator[Difference]:
    job = _as_queued(job, live.job)
    if changes := tuple(_job_changes(job, live.job)):
        yield Difference("mpijob", job.name, CHANGED, changes)
    owned = replace(job.metadata, uid=live.job["metadata"]["uid"])
    children = planned_mpijob(replace(job, metadata=owned), domain).children
    resting = _resting(live.job)
    pairs = [
        (children.service, live.service),
        (children.config_map, live.config_map),
        *((pod, live.workers.get(name_of(pod))) for pod in children.workers),
        (children.launcher_job, live.launcher_job),
    ]
    for made, there in pairs:
        yield from child_differences(made, there, resting)
    for name in sorted(live.workers.keys() - {name_of(pod) for pod in children.workers}):
        yield Difference("pod", name, SURPLUS)


def _job_changes(job: MPIJob, live: Object) -> Iterator[Change]:
    known = load.job(live).value
    stored = to_wire(known) if isinstance(known, MPIJob) else live
    yield from changes_both_ways(to_wire(job), stored)


def _as_queued(job: MPIJob, live: Object) -> MPIJob:
    known = load.job(live).value if queued(live) else None
    if not isinstance(known, MPIJob):
        return job
    policy = replace(job.spec.run_policy, suspend=known.spec.run_policy.suspend)
    return replace(job, spec=replace(job.spec, run_policy=policy))


def _resting(live: Object) -> bool:
    known = load.job(live).value
    if not isinstance(known, MPIJob):
        return False
    return bool(known.spec.run_policy.suspend) or conditions.finished(known.status.conditions)
