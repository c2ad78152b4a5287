"""Stored jobs as `JobView`, and a `JobView` as the summary that lists show. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from mpi_trainer.api.kinds import conditions
from mpi_trainer.api.kinds.mpijob import LAUNCHER, OPEN_MPI, WORKER, MPIJob, MPIJobStatus
from mpi_trainer.decide.observed import ObservedRank
from mpi_trainer.diagnose.progress import Progress
from mpi_trainer.sdk.backends.backend import (
    JobCounts,
    JobDetails,
    JobSummary,
    JobTimes,
    JobView,
    Key,
    RankInfo,
    ReplicaCount,
)
from mpi_trainer.sdk.backends.job_facts import with_facts

LONG_AGO: Final = datetime.fromtimestamp(0, UTC)
"""when a job was created that does not say it"""


def mpijob_view(job: MPIJob, manifest: Mapping[str, Any]) -> JobView:
    meta, status = job.metadata, job.status
    containers = job.launcher.template.content.get("spec", {}).get("containers") or [{}]
    main: Mapping[str, Any] = containers[0]
    return JobView(
        kind=job.kind,
        key=Key(job.namespace, job.name),
        state=conditions.state(status.conditions),
        counts=JobCounts(
            launcher=replica_count(status, LAUNCHER, 1),
            workers=replica_count(status, WORKER, job.workers),
            slots=job.slots,
        ),
        times=JobTimes(
            created=meta.creation_timestamp,
            started=status.start_time,
            completed=status.completion_time,
            deleted=meta.deletion_timestamp,
        ),
        manifest=manifest,
        conditions=status.conditions,
        suspend=bool(job.spec.run_policy.suspend),
        implementation=job.spec.mpi_implementation or OPEN_MPI,
        image=str(main.get("image", "")),
        command=(*(main.get("command") or ()), *(main.get("args") or ())),
    )


def replica_count(status: MPIJobStatus, role: str, wanted: int) -> ReplicaCount:
    found = status.replica_statuses.get(role)
    if found is None:
        return ReplicaCount(wanted)
    return ReplicaCount(wanted, found.active, found.succeeded, found.failed)


def summary(job: JobView, progress: Progress | None = None, waits_for: str = "") -> JobSummary:
    listed = JobSummary(
        key=job.key,
        state=job.state,
        created=job.times.created or LONG_AGO,
        reason=job.reason,
        message=waits_for or job.message,
        started=job.times.started,
        completed=job.times.completed,
        workers=job.workers,
        slots=job.slots,
        implementation=job.implementation,
        progress=progress,
        kind=job.kind,
        waits_for=waits_for,
    )
    return with_facts(listed, job)


def rank_info(rank: ObservedRank, address: str = "", unseen: str = "") -> RankInfo:
    """`unseen` is what is said of one whose end nobody has seen."""
    end = rank.end
    if end is None:
        return RankInfo(rank.rank, rank.pod, address, rank.pid, unseen)
    values = end.code, end.signal, end.reason
    return RankInfo(rank.rank, rank.pod, address, rank.pid, end.text(), *values)


def details_summary(details: JobDetails) -> JobSummary:
    return summary(details.job, details.progress, details.waits_for)
