"""Jobs at a glance: how many there are, how they end, what they hold. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from mpi_trainer.api.kinds import conditions
from mpi_trainer.sdk.backends.backend import JobSummary
from mpi_trainer.server import values, views

SHOWN: Final = 10
PROJECTS: Final = 20
_ENDED: Final = (conditions.SUCCEEDED, conditions.FAILED)
_UNKNOWN_CPUS: Final = (
    "how many CPUs are busy is not known: the cluster has no metrics API (metrics.k8s.io), or it "
    "is closed to you for these namespaces"
)


def overview(
    jobs: Sequence[JobSummary],
    hours: int,
    now: datetime,
    cpus: float | None,
    notes: tuple[str, ...] = (),
    *,
    by_project: bool = False,
) -> values.Overview:
    """`cpus` that are busy, None where that is not known."""
    since = now - timedelta(hours=hours)
    ended = [one for one in jobs if one.state in _ENDED and _end(one) >= since]
    good = [one for one in ended if one.state == conditions.SUCCEEDED]
    failed = [one for one in ended if one.state == conditions.FAILED]
    times = [one.completed - one.started for one in good if one.started and one.completed]
    running = [one for one in jobs if one.state == conditions.RUNNING]
    return values.Overview(
        hours=hours,
        total=len(jobs),
        states=dict(Counter(one.state for one in jobs)),
        succeeded=len(good),
        failed=len(failed),
        success_rate=len(good) / len(ended) if ended else None,
        average_seconds=sum(times, timedelta()).total_seconds() / len(times) if times else None,
        gpus_in_use=sum(one.gpus for one in running),
        cpus_in_use=cpus,
        gpu_hours=sum(_gpu_hours(one, since, now) for one in jobs),
        running=_items(sorted(running, key=_began, reverse=True)),
        waiting=_items(sorted(filter(_waits, jobs), key=_created)),
        failed_lately=_items(sorted(failed, key=_end, reverse=True)),
        projects=_projects(jobs, since, now) if by_project else (),
        notes=notes if cpus is not None else (*notes, _UNKNOWN_CPUS),
    )


def _projects(
    jobs: Sequence[JobSummary], since: datetime, now: datetime
) -> tuple[values.ProjectUse, ...]:
    found: defaultdict[str, list[JobSummary]] = defaultdict(list)
    for one in jobs:
        found[one.key.namespace].append(one)
    uses = [_use(name, own, since, now) for name, own in found.items()]
    uses.sort(key=lambda one: (-one.gpus_in_use, -one.gpu_hours, -one.running, one.namespace))
    return tuple(uses[:PROJECTS])


def _use(
    name: str, jobs: Sequence[JobSummary], since: datetime, now: datetime
) -> values.ProjectUse:
    running = [one for one in jobs if one.state == conditions.RUNNING]
    return values.ProjectUse(
        namespace=name,
        jobs=len(jobs),
        running=len(running),
        waiting=sum(map(_waits, jobs)),
        gpus_in_use=sum(one.gpus for one in running),
        gpu_hours=sum(_gpu_hours(one, since, now) for one in jobs),
    )


def _waits(job: JobSummary) -> bool:
    """A job that somebody has suspended waits for nothing but them; a queue holds one so too."""
    if job.state in (*_ENDED, conditions.RUNNING):
        return False
    return bool(job.queue) or not (job.suspend or job.state == conditions.SUSPENDED)


def _gpu_hours(job: JobSummary, since: datetime, now: datetime) -> float:
    """What it held within the time; of a job with attempts the pauses between them too."""
    if job.started is None or not job.gpus:
        return 0.0
    end = job.completed or (now if job.state == conditions.RUNNING else job.started)
    held = (min(end, now) - max(job.started, since)).total_seconds()
    return job.gpus * max(held, 0.0) / 3600


def _items(jobs: Sequence[JobSummary]) -> tuple[values.JobItem, ...]:
    return tuple(map(views.item, jobs[:SHOWN]))


def _created(job: JobSummary) -> datetime:
    return job.created


def _began(job: JobSummary) -> datetime:
    return job.started or job.created


def _end(job: JobSummary) -> datetime:
    return job.completed or job.created
