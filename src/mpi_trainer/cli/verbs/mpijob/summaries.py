"""The summary of a job whose details are known, and its state in words. Pure."""

from __future__ import annotations

from datetime import datetime

from mpi_trainer.api.kinds import conditions
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.sdk.backends.backend import JobDetails, JobSummary, Key


def of(details: JobDetails) -> JobSummary:
    """The summary of a job whose details are known."""
    job = details.job
    found = job.status.conditions
    state = conditions.state(found)
    current = conditions.find(found, state)
    return JobSummary(
        key=Key(job.namespace, job.name),
        state=state,
        created=job.metadata.creation_timestamp or datetime.min,
        reason=current.reason if current else "",
        message=details.waits_for or (current.message if current else ""),
        started=job.status.start_time,
        completed=job.status.completion_time,
        workers=job.workers,
        slots=job.slots,
        implementation=job.spec.mpi_implementation or "",
        progress=details.progress,
    )


def state_of(job: MPIJob) -> str:
    return conditions.state(job.status.conditions)


def message_of(job: MPIJob) -> str:
    current = conditions.find(job.status.conditions, state_of(job))
    return current.message if current else ""
