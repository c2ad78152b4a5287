"""What applying a job file would change on a cluster: every job and runtime in it.

Pods that a finished or suspended job no longer has are no difference, and neither is what Kueue
does to a queue's job. A TrainJob that has begun keeps the runtime that it began with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from mpi_trainer.api.errors import ExplainedError, InvalidJob
from mpi_trainer.api.kinds import conditions, mpijob, trainjob
from mpi_trainer.api.kinds import runtime as runtimes
from mpi_trainer.api.kinds.labels import LABEL_JOB, LABEL_ROLE
from mpi_trainer.api.kinds.managers import KUEUE
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.runtime import CLUSTER, Runtime, serves
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml import load
from mpi_trainer.api.yaml.load import JobFile
from mpi_trainer.decide.trainjob.status import finished
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIGMAPS,
    JOBS,
    JOBSETS,
    MPIJOBS,
    PODS,
    SERVICES,
    TRAINING_RUNTIMES,
    TRAINJOBS,
)
from mpi_trainer.layout.hosts import launcher_name
from mpi_trainer.plan.comparison import (
    CHANGED,
    NEW,
    SURPLUS,
    Difference,
    changes_both_ways,
    child_differences,
    guards_with_theirs,
    name_of,
    queued,
    read,
)
from mpi_trainer.plan.objects import named, planned_mpijob, planned_trainjob
from mpi_trainer.render import names
from mpi_trainer.render.drift import Change
from mpi_trainer.render.frame import Facts, Object
from mpi_trainer.render.trainjob import snapshots

replace = msgspec.structs.replace


async def file_differences(
    client: Client, file: JobFile, namespace: str, facts: Facts
) -> list[Difference]:
    """`namespace` is for what names none; `facts`: what the controller's options say."""
    listed = [named(one, namespace) for one in file.runtimes]
    found: list[Difference] = []
    for runtime in listed:
        found += await runtime_differences(client, runtime)
    for job in (named(one, namespace) for one in file.jobs):
        found += await mpijob_differences(client, job, facts)
    for train_job in (named(one, namespace) for one in file.train_jobs):
        found += await trainjob_differences(client, train_job, listed, facts)
    return found


class _Live(msgspec.Struct, frozen=True):
    """The job's objects on the cluster; None for what is not there."""

    job: Object
    service: Object | None
    config_map: Object | None
    launcher_job: Object | None
    workers: dict[str, Object]
    guards: tuple[tuple[Object, Object | None], ...]
    """PodGroup and NetworkPolicies as they would be made, each with what is there"""


async def mpijob_differences(client: Client, job: MPIJob, facts: Facts) -> list[Difference]:
    """Nothing where applying the file would change nothing."""
    live = await read(client, MPIJOBS, job.namespace, job.name)
    if live is None:
        planned = planned_mpijob(job, facts)
        own = (made for made in planned if made is not planned.scripts)
        kinds = [(job.kind, job.name), *((made["kind"], name_of(made)) for made in own)]
        return [Difference(kind.lower(), name, NEW) for kind, name in kinds]
    guards = planned_mpijob(_owned(job, live), facts).children.guards
    return [*_differences(job, facts, await _children_of(client, live, guards))]


def _owned(job: MPIJob, live: Object) -> MPIJob:
    return replace(job, metadata=replace(job.metadata, uid=live["metadata"]["uid"]))


async def _children_of(client: Client, job: Object, guards: Iterable[Object]) -> _Live:
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
        tuple([pair async for pair in guards_with_theirs(client, namespace, guards)]),
    )


def _differences(job: MPIJob, facts: Facts, live: _Live) -> Iterator[Difference]:
    job = _as_queued(job, live.job)
    if changes := tuple(_job_changes(job, live.job)):
        yield Difference("mpijob", job.name, CHANGED, changes)
    children = planned_mpijob(_owned(job, live.job), facts).children
    resting = _resting(live.job)
    pairs = [
        *live.guards,
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
    stored = mpijob.to_wire(known) if isinstance(known, MPIJob) else live
    yield from changes_both_ways(mpijob.to_wire(job), stored)


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


async def trainjob_differences(
    client: Client, job: TrainJob, listed: Sequence[Runtime], facts: Facts
) -> list[Difference]:
    """`listed` are the file's runtimes. Nothing where applying the file would change nothing."""
    live = await read(client, TRAINJOBS, job.namespace, job.name)
    if live is None:
        planned = planned_trainjob(job, await _runtime(client, job, listed, None), facts)
        fresh = (made for made in planned if made is not planned.scripts)
        kinds = [(job.kind, job.name), *((made["kind"], name_of(made)) for made in fresh)]
        return [Difference(kind.lower(), name, NEW) for kind, name in kinds]
    known = load.train_job(live).value
    seen = known if isinstance(known, TrainJob) else TrainJob()
    kept = await read(client, CONFIGMAPS, job.namespace, names.runtime_snapshot(job.name))
    runtime = await _runtime(client, job, listed, kept)
    if queued(live):
        job = replace(job, spec=replace(job.spec, suspend=seen.spec.suspend))
    planned = planned_trainjob(_as_stored(job, live, seen), runtime, facts)
    own = tuple(one for one in seen.spec.runtime_patches if one.manager != KUEUE)
    without = replace(seen, spec=replace(seen.spec, runtime_patches=own))
    changes = tuple(changes_both_ways(trainjob.to_wire(job), trainjob.to_wire(without)))
    found = [Difference("trainjob", job.name, CHANGED, changes)] if changes else []
    resting = bool(seen.spec.suspend) or finished(seen.status)
    if kept is None:
        found += child_differences(planned.snapshot, None, resting)
    children = planned.children
    for resource, made in ((CONFIGMAPS, children.config_map), (JOBSETS, children.job_set)):
        if made is not None:
            there = await read(client, resource, job.namespace, name_of(made))
            found += child_differences(made, there, resting)
    async for made, there in guards_with_theirs(client, job.namespace, children.guards):
        found += child_differences(made, there, resting)
    return found


async def runtime_differences(client: Client, runtime: Runtime) -> list[Difference]:
    kind = runtime.kind.lower()
    live = await _read_runtime(client, runtime.kind, runtime.metadata.namespace, runtime.name)
    if live is None:
        return [Difference(kind, runtime.name, NEW)]
    known = load.runtime(live).value
    other = runtimes.to_wire(known) if isinstance(known, Runtime) else live
    changes = tuple(changes_both_ways(runtimes.to_wire(runtime), other))
    return [Difference(kind, runtime.name, CHANGED, changes)] if changes else []


async def _runtime(
    client: Client, job: TrainJob, listed: Sequence[Runtime], kept: Object | None
) -> Runtime:
    """The one it began with; else the file's, which would be applied too; else the cluster's."""
    if kept is not None:
        return snapshots.runtime_in(kept.get("data") or {}, name_of(kept))
    own = next((one for one in listed if serves(one, job)), None)
    if own is not None:
        return own
    ref = job.spec.runtime_ref
    kind = ref.kind or CLUSTER
    live = await _read_runtime(client, kind, job.namespace, ref.name)
    if live is None:
        raise ExplainedError(
            f"there is no {kind} {ref.name}, neither on the cluster nor in the file",
            "Put it into the file, create it, or name another in spec.runtimeRef.",
        )
    found = load.runtime(live)
    if found.errors or not isinstance(found.value, Runtime):
        raise InvalidJob(found.errors)
    return found.value


async def _read_runtime(client: Client, kind: str, namespace: str, name: str) -> Object | None:
    if kind == CLUSTER:
        return await read(client, CLUSTER_TRAINING_RUNTIMES, "", name)
    return await read(client, TRAINING_RUNTIMES, namespace, name)


def _as_stored(job: TrainJob, live: Object, seen: TrainJob) -> TrainJob:
    """The file's job as it would stand in place of `live`: with its uid, and Kueue's patch."""
    theirs = tuple(one for one in seen.spec.runtime_patches if one.manager == KUEUE)
    spec = replace(job.spec, runtime_patches=(*job.spec.runtime_patches, *theirs))
    metadata = replace(job.metadata, uid=live["metadata"]["uid"])
    return replace(job, metadata=metadata, spec=spec)
