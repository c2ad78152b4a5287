"""What can be done with an MPIJob: `AsyncMPIJob` with `await`, and `MPIJob`, made from it, without.

Methods of AsyncMPIJob say `self: Job`: they use what a job is and its backend, and nothing in which
the two classes differ.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Self, TypeVar

from mpi_trainer.sdk import event_loop
from mpi_trainer.sdk.backends.backend import Backend, EventInfo, JobDetails, Key, LogLine, LogQuery
from mpi_trainer.sdk.client.connect import connect
from mpi_trainer.sdk.job import events
from mpi_trainer.sdk.job.base import Job
from mpi_trainer.sdk.job.progress_line import progress_display
from mpi_trainer.sdk.job.state import (
    JobMetrics,
    JobState,
    details_metrics,
    details_state,
    job_failure,
)
from mpi_trainer.sdk.synchronous import blocking, iterating

J = TypeVar("J", bound=Job)


class AsyncMPIJob(Job):
    __doc__ = Job.__doc__

    @classmethod
    async def get(
        cls, name: str, namespace: str = "", *, backend: Backend | None = None
    ) -> AsyncMPIJob:
        """The job of that name.

        Raises:
            JobNotFound: There is none.
        """
        backend = backend or connect()
        found = await backend.get(Key(namespace or backend.namespace, name))
        return cls._viewed(found, backend)

    async def create(self: J) -> J:
        """Submits the job and returns it; it runs from now on, whatever becomes of this program.

        Raises:
            ValueError: The job makes no sense, or (JobExists) its name is taken.
        """
        self.validate()
        self._note(await self.backend.create(self._placed(), self._workdir))
        return self

    async def get_status(self: Job) -> JobState:
        """Where the job stands now."""
        self._seen = details_state(await self.backend.details(self.key))
        return self._seen

    async def describe(self: Job) -> JobDetails:
        """Everything that is known of the job: pods, ranks, events, conditions."""
        return await self.backend.details(self.key)

    async def wait_for_completion(
        self: Job,
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
        drawn = progress_display() if show else None
        self._seen = await events.until_finished(self.backend, self.key, timeout, drawn)
        if self._seen.failed:
            raise job_failure(self._seen)
        return self._seen

    def watch(self: Job) -> AsyncIterator[JobState]:
        """Where the job stands now, and after every change, until it has ended or is gone."""
        return events.watched_states(self.backend, self.key, looking=True)

    def get_logs(  # noqa: PLR0913 - every way to choose lines; all have defaults
        self: Job,
        worker_index: int | None = None,
        rank: int | None = None,
        follow: bool = False,
        *,
        tail: int | None = None,
        since: datetime | None = None,
        grep: str | None = None,
        attempt: int | None = None,
    ) -> AsyncIterator[LogLine]:
        """The lines that the job wrote, each with its rank, pod and time.

        Args:
            worker_index: Only what this worker itself wrote (its sshd); ranks' lines come by rank.
            rank: Only this rank's lines.
            follow: Go on until the job has ended.
            tail: Only the last so many lines of what is there already.
            since: Only lines from then on.
            grep: Only lines in which this regular expression is found.
            attempt: Only this attempt's lines, counted from 1; on a cluster the last ones of an
                attempt whose pods are gone.
        """
        query = LogQuery(
            rank=rank,
            worker=worker_index,
            follow=follow,
            since=since,
            tail=tail,
            grep=grep,
            attempt=attempt,
        )
        return self.backend.logs(self.key, query)

    def stream_events(self: Job) -> AsyncIterator[EventInfo]:
        """What happened to the job and happens still, until it has ended."""
        return events.job_events(self.backend, self.key)

    async def get_metrics(self: Job) -> JobMetrics:
        """How far the job is, the last values it printed (such as loss), and what it uses."""
        return details_metrics(await self.backend.details(self.key), datetime.now(UTC))

    async def suspend(self: Job) -> JobState:
        """Ends the job's pods and keeps the job, to be resumed."""
        return self._note(await self.backend.suspend(self.key))

    async def resume(self: Job) -> JobState:
        """Starts a suspended job again, from its beginning or its own checkpoint."""
        return self._note(await self.backend.resume(self.key))

    async def restart(self: Job) -> JobState:
        """Runs the job anew, whether it has ended or still runs."""
        return self._note(await self.backend.restart(self.key))

    async def delete(self: Job) -> None:
        """Ends the job and removes it; returns when nothing of it is left."""
        await self.backend.delete(self.key)
        self._seen = None


class MPIJob(Job):
    __doc__ = Job.__doc__

    @classmethod
    def get(cls, name: str, namespace: str = "", *, backend: Backend | None = None) -> Self:
        """The job of that name.

        Raises:
            JobNotFound: There is none.
        """
        return cls.like(event_loop.run(AsyncMPIJob.get(name, namespace, backend=backend)))

    @classmethod
    def like(cls, job: Job) -> Self:
        """The same job, for synchronous use."""
        made = cls.__new__(cls)
        made._hold(job._definition, job._backend)
        made._seen = job._seen
        return made

    def create(self) -> Self:
        """Submits the job and returns it; it runs from now on, whatever becomes of this program.

        Raises:
            ValueError: The job makes no sense, or (JobExists) its name is taken.
        """
        return event_loop.run(AsyncMPIJob.create(self))

    get_status = blocking(AsyncMPIJob.get_status)
    describe = blocking(AsyncMPIJob.describe)
    wait_for_completion = blocking(AsyncMPIJob.wait_for_completion)
    watch = iterating(AsyncMPIJob.watch)
    get_logs = iterating(AsyncMPIJob.get_logs)
    stream_events = iterating(AsyncMPIJob.stream_events)
    get_metrics = blocking(AsyncMPIJob.get_metrics)
    suspend = blocking(AsyncMPIJob.suspend)
    resume = blocking(AsyncMPIJob.resume)
    restart = blocking(AsyncMPIJob.restart)
    delete = blocking(AsyncMPIJob.delete)
