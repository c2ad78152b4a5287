"""What TrainJobs and runtimes in a file and a cluster disagree about.

A job that has begun keeps the runtime that it began with, whatever has become of that since. What
Kueue has put into a job is Kueue's, and so is when a queue's job is suspended.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mpi_trainer.api.errors import ExplainedError, InvalidJob
from mpi_trainer.api.kinds import runtime as runtimes
from mpi_trainer.api.kinds.managers import KUEUE
from mpi_trainer.api.kinds.runtime import CLUSTER, Runtime, serves
from mpi_trainer.api.kinds.trainjob import TrainJob, to_wire
from mpi_trainer.api.yaml import load
from mpi_trainer.decide.trainjob.status import finished
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIGMAPS,
    JOBSETS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
)
from mpi_trainer.plan.comparison import (
    CHANGED,
    NEW,
    Difference,
    changes_both_ways,
    child_differences,
    name_of,
    queued,
    read,
)
from mpi_trainer.plan.objects import planned_trainjob
from mpi_trainer.render import names
from mpi_trainer.render.frame import Object
from mpi_trainer.render.trainjob import snapshots

replace = msgspec.structs.replace


async def trainjob_differences(
    client: Client, job: TrainJob, listed: Sequence[Runtime], domain: str
) -> list[Difference]:
    """`listed` are the file's runtimes. Nothing where applying the file would change nothing."""
    live = await read(client, TRAINJOBS, job.namespace, job.name)
    if live is None:
        planned = planned_trainjob(job, await _runtime(client, job, listed, None), domain)
        fresh = (made for made in planned if made is not planned.scripts)
        kinds = [(job.kind, job.name), *((made["kind"], name_of(made)) for made in fresh)]
        return [Difference(kind.lower(), name, NEW) for kind, name in kinds]
    known = load.train_job(live).value
    seen = known if isinstance(known, TrainJob) else TrainJob()
    kept = await read(client, CONFIGMAPS, job.namespace, names.runtime_snapshot(job.name))
    runtime = await _runtime(client, job, listed, kept)
    if queued(live):
        job = replace(job, spec=replace(job.spec, suspend=seen.spec.suspend))
    planned = planned_trainjob(_as_stored(job, live, seen), runtime, domain)
    own = tuple(one for one in seen.spec.runtime_patches if one.manager != KUEUE)
    without = replace(seen, spec=replace(seen.spec, runtime_patches=own))
    changes = tuple(changes_both_ways(to_wire(job), to_wire(without)))
    found = [Difference("trainjob", job.name, CHANGED, changes)] if changes else []
    resting = bool(seen.spec.suspend) or finished(seen.status)
    if kept is None:
        found += child_differences(planned.snapshot, None, resting)
    children = planned.children
    for resource, made in ((CONFIGMAPS, children.config_map), (JOBSETS, children.job_set)):
        if made is not None:
            there = await read(client, resource, job.namespace, name_of(made))
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
