"""`odh migrate --check`: what a cluster says of the result, and which pods would differ.

The cluster is asked by dry runs. A TrainJob whose runtime is not there yet is not asked about: its
admission needs the runtime, and a dry run leaves none behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml import load
from mpi_trainer.cli import context
from mpi_trainer.migrate.report import Converted, Object
from mpi_trainer.plan.migrated_pods import PodDifference, pod_differences
from mpi_trainer.plan.objects import named

Place = tuple[str, str]


class Result(msgspec.Struct, frozen=True):
    """`asked`: whether a cluster was, and about all of it."""

    differences: tuple[PodDifference, ...] = ()
    refusals: tuple[str, ...] = ()
    asked: bool = False


Checked = Mapping[Place, Result]


def place(job: Converted) -> Place:
    return job.namespace, job.name


def checked(jobs: Sequence[Converted], namespace: str) -> Checked:
    asked = context.on_cluster()
    refusals = context.run_async(_refusals(jobs, namespace)) if asked and jobs else {}
    return {
        place(job): Result(
            tuple(_differences(job)),
            refusals.get(place(job), ()),
            asked and not any(one["kind"] == "TrainJob" for one in job.objects),
        )
        for job in jobs
    }


def _differences(job: Converted) -> Iterable[PodDifference]:
    return pod_differences(job.through, job.objects) if job.through else ()


async def _refusals(jobs: Sequence[Converted], namespace: str) -> dict[Place, tuple[str, ...]]:
    cluster = context.cluster(single=True)
    found: dict[Place, tuple[str, ...]] = {}
    for job in jobs:
        said: list[str] = []
        known = {one.name for one in await cluster.runtimes(job.namespace or namespace)}
        for made in job.objects:
            wanted = _job(made, namespace)
            if isinstance(wanted, TrainJob) and wanted.spec.runtime_ref.name not in known:
                continue
            if wanted is not None:
                said += await cluster.refusals(wanted)
        found[place(job)] = tuple(said)
    return found


def _job(made: Object, namespace: str) -> MPIJob | TrainJob | None:
    """With the name and the namespace that it would have; None where it is no job."""
    if made["kind"] == "MPIJob":
        mpijob = load.job(made).value
        return named(mpijob, namespace) if isinstance(mpijob, MPIJob) else None
    if made["kind"] == "TrainJob":
        train_job = load.train_job(made).value
        return named(train_job, namespace) if isinstance(train_job, TrainJob) else None
    return None
