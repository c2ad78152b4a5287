"""Where jobs stand, as small values: the same words in SDK, notebook and CLI (AC-8). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TypeVar

import msgspec

from mpi_trainer.api.kinds import conditions
from mpi_trainer.diagnose.progress import Progress
from mpi_trainer.sdk.backends.backend import JobDetails, JobSummary, JobView, ReplicaCount
from mpi_trainer.sdk.backends.usage import JobUsage, PodUsage
from mpi_trainer.sdk.errors import JobFailed


class JobState(msgspec.Struct, frozen=True):
    """A job at one moment.

    state: Created, Running, Restarting, Suspended, Succeeded or Failed; reason and message say
    why. last_reconcile_time: when its controller last looked at it. waits_for: what a job that
    does not run yet is waiting for. progress: how far the program says it is, where it prints
    that.
    """

    name: str
    namespace: str
    state: str
    reason: str = ""
    message: str = ""
    created: datetime | None = None
    started: datetime | None = None
    completed: datetime | None = None
    launcher: ReplicaCount = ReplicaCount(1)
    workers: ReplicaCount = ReplicaCount(0)
    progress: Progress | None = None
    waits_for: str = ""
    last_reconcile_time: datetime | None = None

    @property
    def finished(self) -> bool:
        return self.state in (conditions.SUCCEEDED, conditions.FAILED)

    @property
    def succeeded(self) -> bool:
        return self.state == conditions.SUCCEEDED

    @property
    def failed(self) -> bool:
        return self.state == conditions.FAILED

    @property
    def seconds(self) -> float | None:
        """How long it ran; None while it runs."""
        if self.started is None or self.completed is None:
            return None
        return (self.completed - self.started).total_seconds()

    def _repr_html_(self) -> str:
        from mpi_trainer.sdk.job.html import state_card

        return state_card(self)


class JobMetrics(msgspec.Struct, frozen=True):
    """What a job says of itself and uses.

    metrics: the last value of each that the program printed, such as loss. seconds: since it
    started, or as long as it ran. cpus: cores that are busy now; memory_bytes: of all pods, now;
    peak_memory_bytes: the most of one pod, of a job that has ended; pods: the same by pod, with
    GPUs where DCGM metrics are known. cpu_seconds: since the start, on this machine. source: who
    measured. notes: what is not known, why, and what to do about it.
    """

    metrics: Mapping[str, float]
    progress: Progress | None = None
    seconds: float | None = None
    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    cpus: float | None = None
    peak_memory_bytes: int | None = None
    pods: tuple[PodUsage, ...] = ()
    source: str = ""
    notes: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        from mpi_trainer.sdk.job.html import metrics_table

        return metrics_table(self)


def job_state(job: JobView, progress: Progress | None = None, waits_for: str = "") -> JobState:
    return JobState(
        name=job.name,
        namespace=job.namespace,
        state=job.state,
        reason=job.reason,
        message=job.message,
        created=job.times.created,
        started=job.times.started,
        completed=job.times.completed,
        launcher=job.counts.launcher,
        workers=job.counts.workers,
        progress=progress,
        waits_for=waits_for,
        last_reconcile_time=job.last_reconcile_time,
    )


def details_state(details: JobDetails) -> JobState:
    return job_state(details.job, details.progress, details.waits_for)


def job_metrics(details: JobDetails, usage: JobUsage | None, now: datetime) -> JobMetrics:
    """`usage` is None where the job has gone meanwhile."""
    times = details.job.times
    pods = usage.pods if usage else ()
    peaks = [pod.peak_memory_bytes for pod in pods if pod.peak_memory_bytes is not None]
    return JobMetrics(
        metrics=dict(details.progress.metrics) if details.progress else {},
        progress=details.progress,
        seconds=((times.completed or now) - times.started).total_seconds()
        if times.started
        else None,
        cpu_seconds=_sum(pod.cpu_seconds for pod in details.pods),
        memory_bytes=_sum(pod.memory_bytes for pod in pods),
        cpus=_sum(pod.cpus for pod in pods),
        peak_memory_bytes=max(peaks, default=None),
        pods=pods,
        source=usage.source if usage else "",
        notes=usage.notes if usage else (),
    )


N = TypeVar("N", int, float)


def _sum(figures: Iterable[N | None]) -> N | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None


def job_failure(state: JobState) -> JobFailed:
    """The error that a failed job raises in whoever waits for it."""
    why = f": {state.message}" if state.message else ""
    reason = f" ({state.reason})" if state.reason else ""
    return JobFailed(
        f"job {state.namespace}/{state.name} failed{reason}{why}",
        "Read what the ranks wrote with get_logs(), and how each pod ended with describe().",
        state.reason,
    )


class JobList(tuple[JobSummary, ...]):
    """Jobs, newest first."""

    __slots__ = ()

    def __new__(cls, jobs: Iterable[JobSummary] = ()) -> JobList:
        return super().__new__(cls, jobs)

    @property
    def names(self) -> list[str]:
        return [job.key.name for job in self]

    def __repr__(self) -> str:
        """A line for each, as a terminal shows it."""
        return "\n".join(f"{job.key}: {job.state}" for job in self) or "no jobs"

    def _repr_html_(self) -> str:
        from mpi_trainer.sdk.job.html import jobs_table

        return jobs_table(self)
