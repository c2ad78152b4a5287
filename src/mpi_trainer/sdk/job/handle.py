"""A job that is somewhere, and what can be done with it, whatever its kind.

`AsyncOperations` is for callers with `await`; `Operations`, made from it, for those without. Its
methods say `self: JobHandle`: they use the job's name and its backend, and nothing in which the
two differ. The plain answers (`get_status`, `wait_for_completion`, `get_logs`) are text; beside
each is one with everything that is known (`status`, `wait`, `logs`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine
from datetime import UTC, datetime
from typing import Any, ClassVar

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.diagnose.finding import Finding
from mpi_trainer.sdk import event_loop
from mpi_trainer.sdk.backends.backend import (
    Backend,
    EventInfo,
    JobDetails,
    JobView,
    Key,
    LogLine,
    LogQuery,
)
from mpi_trainer.sdk.client.connect import connect
from mpi_trainer.sdk.job import events
from mpi_trainer.sdk.job.explain import explained
from mpi_trainer.sdk.job.progress_line import progress_display
from mpi_trainer.sdk.job.state import (
    JobMetrics,
    JobState,
    details_state,
    job_failure,
    job_metrics,
)
from mpi_trainer.sdk.synchronous import blocking, iterating


class JobHandle:
    """Which job, and where it runs."""

    _kind: ClassVar[str] = ""
    """the one that it must be of; empty where it may be of any"""
    _definition: MPIJob | TrainJob | JobView
    _backend: Backend | None
    _seen: JobState | None

    @property
    def name(self) -> str:
        return self._definition.name

    @property
    def namespace(self) -> str:
        return self._definition.namespace or self.backend.namespace

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    @property
    def backend(self) -> Backend:
        """Where the job runs."""
        if self._backend is None:
            self._backend = connect()
        return self._backend

    @property
    def _place(self) -> Backend:
        """The backend, where only jobs of this kind are seen."""
        return self.backend.of_kind(self._kind) if self._kind else self.backend

    def _note(self, job: JobView) -> JobState:
        """Takes the job as its backend has it now."""
        raise NotImplementedError

    def __repr__(self) -> str:
        state = self._seen.state if self._seen else "not seen yet"
        place = f"{self._definition.namespace}/" if self._definition.namespace else ""
        return f"<{type(self).__name__} {place}{self.name}: {state}>"


async def _status(job: JobHandle) -> JobState:
    job._seen = details_state(await job._place.details(job.key))
    return job._seen


async def _finished(job: JobHandle, seconds: float | None, show: bool) -> JobState:
    drawn = progress_display() if show else None
    job._seen = await events.until_finished(job._place, job.key, seconds, drawn)
    return job._seen


class AsyncOperations(JobHandle):
    async def get_status(self: JobHandle) -> str:
        """The job's state now: Created, Running, Restarting, Suspended, Succeeded or Failed.

        `status` says why, since when, and how far it is.
        """
        return (await _status(self)).state

    @property
    def status(self) -> Coroutine[Any, Any, JobState]:
        """Where the job stands now: state, reason, times, pods, progress."""
        return _status(self)

    async def describe(self: JobHandle) -> JobDetails:
        """Everything that is known of the job: pods, ranks, events, conditions."""
        return await self._place.details(self.key)

    async def explain(self: JobHandle) -> tuple[Finding, ...]:
        """Why the job failed, the most likely cause first: rank, host, the line that shows it, and
        what to do. Of a job that runs and seems to be stuck, a `suspicion` that says which ranks
        wait where. Nothing where it succeeded, or runs without a sign of failure.
        """
        return await explained(self._place, self.key)

    async def wait_for_completion(
        self: JobHandle,
        timeout: float | None = None,  # noqa: ASYNC109 - the word that users know
        show: bool = False,
    ) -> str:
        """Waits until the job has ended, and returns `"Succeeded"` or `"Failed"`.

        `wait` says why it failed, by an exception.

        Args:
            timeout: Seconds; the job itself runs on when they are over.
            show: Draw the progress meanwhile, in a notebook or on a terminal.

        Raises:
            JobTimeout: (TimeoutError) it has not ended in time.
            JobNotFound: It was deleted.
        """
        return (await _finished(self, timeout, show)).state

    async def wait(
        self: JobHandle,
        timeout: float | None = None,  # noqa: ASYNC109 - the word that users know
        show: bool = False,
    ) -> JobState:
        """Waits until the job has succeeded, and returns its last state.

        Args:
            timeout: Seconds; the job itself runs on when they are over.
            show: Draw the progress meanwhile, in a notebook or on a terminal.

        Raises:
            JobFailed: (RuntimeError) as soon as it has failed, with reason and message.
            JobTimeout: (TimeoutError) it has not ended in time.
            JobNotFound: It was deleted.
        """
        ended = await _finished(self, timeout, show)
        if ended.failed:
            raise job_failure(ended)
        return ended

    def watch(self: JobHandle) -> AsyncIterator[JobState]:
        """Where the job stands now, and after every change, until it has ended or is gone."""
        return events.watched_states(self._place, self.key, looking=True)

    async def get_logs(
        self: JobHandle,
        worker_index: int | None = None,
        rank: int | None = None,
        *,
        tail: int | None = None,
    ) -> str:
        """What the launcher wrote so far, which is what all ranks print, as one text.

        `logs` gives line by line, with rank, pod and time, and follows a job that runs.

        Args:
            worker_index: What this worker itself wrote (its sshd) instead, counted from 0.
            rank: Only this rank's lines.
            tail: Only the last so many lines.

        Raises:
            JobNotFound: There is no such job.
        """
        query = LogQuery(rank=rank, worker=worker_index, tail=tail)
        return "".join([f"{line.text}\n" async for line in self._place.logs(self.key, query)])

    def logs(  # noqa: PLR0913 - every way to choose lines; all have defaults
        self: JobHandle,
        worker_index: int | None = None,
        rank: int | None = None,
        follow: bool = False,
        *,
        tail: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        grep: str | None = None,
        level: str = "",
        attempt: int | None = None,
        pod: str = "",
        all_pods: bool = False,
    ) -> AsyncIterator[LogLine]:
        """The lines that the job wrote, each with its rank, pod and time.

        Args:
            worker_index: Only what this worker itself wrote (its sshd); ranks' lines come by rank.
            rank: Only this rank's lines.
            follow: Go on until the job has ended.
            tail: Only the last so many lines of what is there already.
            since: Only lines from then on.
            until: Only lines up to then.
            grep: Only lines in which this regular expression is found.
            level: Only lines that are at least so serious: debug, info, warning or error.
            attempt: Only this attempt's lines, counted from 1; on a cluster the last ones of an
                attempt whose pods are gone.
            pod: Only what the pod of this name wrote.
            all_pods: What every pod wrote, the launcher's lines first.
        """
        query = LogQuery(
            rank=rank,
            worker=worker_index,
            follow=follow,
            since=since,
            tail=tail,
            grep=grep,
            attempt=attempt,
            until=until,
            level=level,
            pod=pod,
            all_pods=all_pods,
        )
        return self._place.logs(self.key, query)

    def stream_logs(
        self: JobHandle, worker_index: int | None = None, rank: int | None = None
    ) -> AsyncIterator[LogLine]:
        """The lines as the job writes them, until it has ended: `logs` with `follow`."""
        return self._place.logs(self.key, LogQuery(rank=rank, worker=worker_index, follow=True))

    def stream_events(self: JobHandle) -> AsyncIterator[EventInfo]:
        """What happened to the job and happens still, until it has ended."""
        return events.job_events(self._place, self.key)

    async def get_metrics(self: JobHandle) -> JobMetrics:
        """How far the job is, the last values it printed (such as loss), and what it uses.

        On a cluster CPU and memory come from its metrics API; GPUs from the pages of a DCGM
        exporter that the variable MPI_TRAINER_GPU_METRICS names.
        """
        details = await self._place.details(self.key)
        usage = await self._place.usage([self.key])
        return job_metrics(details, usage.get(self.key), datetime.now(UTC))

    async def suspend(self: JobHandle) -> JobState:
        """Ends the job's pods and keeps the job, to be resumed."""
        return self._note(await self._place.suspend(self.key))

    async def resume(self: JobHandle) -> JobState:
        """Starts a suspended job again, from its beginning or its own checkpoint."""
        return self._note(await self._place.resume(self.key))

    async def restart(self: JobHandle) -> JobState:
        """Runs the job anew, whether it has ended or still runs."""
        return self._note(await self._place.restart(self.key))

    async def delete(self: JobHandle) -> None:
        """Ends the job and removes it; returns when nothing of it is left."""
        await self._place.delete(self.key)
        self._seen = None


class Operations(JobHandle):
    get_status = blocking(AsyncOperations.get_status)

    @property
    def status(self) -> JobState:
        """Where the job stands now: state, reason, times, pods, progress."""
        return event_loop.run(_status(self))

    describe = blocking(AsyncOperations.describe)
    explain = blocking(AsyncOperations.explain)
    wait_for_completion = blocking(AsyncOperations.wait_for_completion)
    wait = blocking(AsyncOperations.wait)
    watch = iterating(AsyncOperations.watch)
    get_logs = blocking(AsyncOperations.get_logs)
    logs = iterating(AsyncOperations.logs)
    stream_logs = iterating(AsyncOperations.stream_logs)
    stream_events = iterating(AsyncOperations.stream_events)
    get_metrics = blocking(AsyncOperations.get_metrics)
    suspend = blocking(AsyncOperations.suspend)
    resume = blocking(AsyncOperations.resume)
    restart = blocking(AsyncOperations.restart)
    delete = blocking(AsyncOperations.delete)
