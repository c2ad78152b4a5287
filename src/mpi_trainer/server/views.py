"""Values of the SDK as those of the REST API. Pure."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from mpi_trainer.api.kinds import mpijob, trainjob
from mpi_trainer.plan.comparison import Difference
from mpi_trainer.sdk.backends.backend import JobDetails, JobSummary, JobView
from mpi_trainer.server import values

T = TypeVar("T")


def alike(found: Any, kind: type[T]) -> T:
    """The value with the same fields."""
    return msgspec.convert(found, kind, from_attributes=True)


CHANGED: Final = frozenset({mpijob.KIND, trainjob.KIND})
"""kinds that have paths of their own"""


def item(job: JobSummary) -> values.JobItem:
    return values.JobItem(
        kind=job.kind,
        namespace=job.key.namespace,
        name=job.key.name,
        state=_state(job.state),
        reason=job.reason,
        message=job.message,
        created=job.created,
        started=job.started,
        completed=job.completed,
        workers=job.workers,
        slots=job.slots,
        implementation=job.implementation,
        progress=None if job.progress is None else alike(job.progress, values.Progress),
        uid=job.uid,
        resource_version=job.resource_version,
        gpus=job.gpus,
        queue=job.queue,
        runtime=job.runtime,
        owner=job.owner,
        suspend=job.suspend,
        read_only=job.kind not in CHANGED,
        waits_for=job.waits_for,
    )


def job(found: JobView) -> values.Job:
    return values.Job(
        kind=found.kind,
        namespace=found.namespace,
        name=found.name,
        uid=found.uid,
        state=_state(found.state),
        reason=found.reason,
        message=found.message,
        suspend=found.suspend,
        workers=found.workers,
        slots=found.slots,
        implementation=found.implementation,
        image=found.image,
        command=found.command,
        created=found.times.created,
        started=found.times.started,
        completed=found.times.completed,
        deleted=found.times.deleted,
        manifest=found.manifest,
    )


def status(found: JobDetails) -> values.JobStatus:
    job = found.job
    return values.JobStatus(
        kind=job.kind,
        namespace=job.namespace,
        name=job.name,
        state=_state(job.state),
        reason=job.reason,
        message=job.message,
        started=job.times.started,
        completed=job.times.completed,
        launcher=alike(job.counts.launcher, values.Replicas),
        workers=alike(job.counts.workers, values.Replicas),
        conditions=alike(job.conditions, tuple[values.Condition, ...]),
        pods=alike(found.pods, tuple[values.Pod, ...]),
        ranks=alike(found.ranks, tuple[values.Rank, ...]),
        attempts=alike(found.attempts, tuple[values.Attempt, ...]),
        progress=None if found.progress is None else alike(found.progress, values.Progress),
        waits_for=found.waits_for,
        missing=found.missing,
    )


def difference(found: Difference) -> values.Difference:
    changes = (values.Change(one.field, one.live, one.wanted) for one in found.changes)
    return values.Difference(found.kind, found.name, found.state, tuple(changes))


def _state(word: str) -> values.State:
    """Backends use the six words alone."""
    state: values.State = msgspec.convert(word, values.State)
    return state
