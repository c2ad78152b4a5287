"""The jobs of a namespace, by name, for callers with `await` and without.

A client holds its own connection and nothing is shared between two of them. `MPIJobClient` has the
short verbs; `TrainingClient` is the same under the names that say what is meant. As with jobs,
methods of the Async classes say `self: Client`, so that the others are made from them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mpi_trainer.sdk.backends.backend import Backend, EventInfo, JobDetails, LogLine
from mpi_trainer.sdk.client.connect import connect
from mpi_trainer.sdk.errors import K8sApiException, RuntimeNotFound
from mpi_trainer.sdk.job.mpijob import AsyncMPIJob, Job, MPIJob
from mpi_trainer.sdk.job.specs import MPIJobSpec
from mpi_trainer.sdk.job.state import JobList, JobMetrics, JobState
from mpi_trainer.sdk.synchronous import blocking, converting, iterating

if TYPE_CHECKING:
    from mpi_trainer.api.kinds.trainjob import TrainJob


class Client:
    """A client for the jobs of a namespace.

    Args:
        namespace: The namespace where a method is given none; by default the connection's own.
        backend: Where the jobs run; by default as `connect()` finds.
    """

    def __init__(self, namespace: str = "", *, backend: Backend | None = None) -> None:
        self.backend = backend or connect()
        self.namespace = namespace or self.backend.namespace

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.namespace} on {self.backend.name}>"

    async def _job(self, name: str, namespace: str | None) -> AsyncMPIJob:
        return await AsyncMPIJob.get(name, namespace or self.namespace, backend=self.backend)

    def _followed(self, name: str, namespace: str | None) -> AsyncMPIJob:
        """A job that is only looked at, so that it need not be fetched before."""
        return AsyncMPIJob(name, namespace or self.namespace, backend=self.backend)

    async def _has_runtime(self, job: TrainJob) -> bool:
        """Whether the job's runtime is there, and ours to see."""
        try:
            await self.backend.runtime(job.spec.runtime_ref, job.namespace)
        except (RuntimeNotFound, K8sApiException) as error:
            if isinstance(error, K8sApiException) and error.status not in (403, 404):
                raise
            return False
        return True


class AsyncMPIJobClient(Client):
    __doc__ = Client.__doc__

    async def create(
        self: Client,
        job: Job | MPIJobSpec | Mapping[str, Any] | str,
        name: str | None = None,
        namespace: str | None = None,
    ) -> AsyncMPIJob:
        """Submits a job and returns it.

        Args:
            job: An MPIJob, an MPIJobSpec (then `name` is needed), or a manifest: its text, or
                the same as a dict.
            name: The job's name, for a spec.
            namespace: The job's namespace, for a spec.

        Raises:
            ValueError: The job makes no sense, or (JobExists) its name is taken.
        """
        if isinstance(job, Job):
            made = AsyncMPIJob.of(job._mpijob(), self.backend)
            made._workdir, made._volumes = job._workdir, job._volumes
        elif isinstance(job, MPIJobSpec):
            if not name:
                raise ValueError("name is missing: a spec has none; write create(spec, name=...)")
            space = namespace or self.namespace
            made = AsyncMPIJob.from_spec(name, job, space, backend=self.backend)
        else:
            made = AsyncMPIJob.from_manifest(job, backend=self.backend)
        return await made.create()

    async def get(self: Client, name: str, namespace: str | None = None) -> AsyncMPIJob:
        """The job of that name.

        Raises:
            JobNotFound: There is none.
        """
        return await self._job(name, namespace)

    async def list(
        self: Client,
        namespace: str | None = None,
        *,
        all_namespaces: bool = False,
        state: str | None = None,
    ) -> JobList:
        """Jobs, newest first; with `state` only those in it, such as `Running`."""
        found = await self.backend.list(None if all_namespaces else namespace or self.namespace)
        return JobList(job for job in found if state in (None, job.state))

    async def status(self: Client, name: str, namespace: str | None = None) -> JobState:
        """Where the job stands now."""
        return await self._followed(name, namespace).status

    async def describe(self: Client, name: str, namespace: str | None = None) -> JobDetails:
        """Everything that is known of the job: pods, ranks, events, conditions."""
        return await self._followed(name, namespace).describe()

    async def wait(
        self: Client,
        name: str,
        namespace: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the word that users know
        show: bool = False,
    ) -> JobState:
        """Waits until the job has succeeded, and returns its last state.

        Raises:
            JobFailed: (RuntimeError) as soon as it has failed, with reason and message.
            JobTimeout: (TimeoutError) it has not ended in `timeout` seconds.
            JobNotFound: There is none, or it was deleted.
        """
        return await self._followed(name, namespace).wait(timeout, show)

    def watch(self: Client, name: str, namespace: str | None = None) -> AsyncIterator[JobState]:
        """Where the job stands now, and after every change, until it has ended or is gone."""
        return self._followed(name, namespace).watch()

    def events(self: Client, name: str, namespace: str | None = None) -> AsyncIterator[EventInfo]:
        """What happened to the job and happens still, until it has ended."""
        return self._followed(name, namespace).stream_events()

    def logs(  # noqa: PLR0913 - every way to choose lines; all but the name have defaults
        self: Client,
        name: str,
        namespace: str | None = None,
        *,
        worker_index: int | None = None,
        rank: int | None = None,
        follow: bool = False,
        tail: int | None = None,
        since: datetime | None = None,
        grep: str | None = None,
        attempt: int | None = None,
    ) -> AsyncIterator[LogLine]:
        """The lines that the job wrote, each with its rank, pod and time.

        Which lines is chosen as for `MPIJob.logs`.
        """
        job = self._followed(name, namespace)
        return job.logs(
            worker_index, rank, follow, tail=tail, since=since, grep=grep, attempt=attempt
        )

    async def metrics(self: Client, name: str, namespace: str | None = None) -> JobMetrics:
        """How far the job is, the last values it printed (such as loss), and what it uses."""
        return await self._followed(name, namespace).get_metrics()

    async def suspend(self: Client, name: str, namespace: str | None = None) -> JobState:
        """Ends the job's pods and keeps the job, to be resumed."""
        return await self._followed(name, namespace).suspend()

    async def resume(self: Client, name: str, namespace: str | None = None) -> JobState:
        """Starts a suspended job again, from its beginning or its own checkpoint."""
        return await self._followed(name, namespace).resume()

    async def restart(self: Client, name: str, namespace: str | None = None) -> JobState:
        """Runs the job anew, whether it has ended or still runs."""
        return await self._followed(name, namespace).restart()

    async def delete(self: Client, name: str, namespace: str | None = None) -> None:
        """Ends the job and removes it; returns when nothing of it is left."""
        await self._followed(name, namespace).delete()


class AsyncTrainingClient(Client):
    __doc__ = Client.__doc__

    async def create_mpi_job(
        self: Client,
        job: Job | MPIJobSpec | Mapping[str, Any] | str,
        name: str | None = None,
        namespace: str | None = None,
    ) -> AsyncMPIJob:
        """Submits a job and returns it.

        It is given as to `MPIJobClient.create`. A spec becomes a TrainJob where that API and our
        runtimes are there and a TrainJob can say all of it, and else an MPIJob. What is an MPIJob
        already stays one.

        Raises:
            ValueError: The job makes no sense, or (JobExists) its name is taken.
        """
        if isinstance(job, MPIJobSpec) and name:
            from mpi_trainer.sdk.job import trainjobs

            described = trainjobs.trainjob_from_spec(job, name, namespace or self.namespace)
            if described is not None and await self._has_runtime(described):
                stored = await self.backend.create_trainjob(described)
                return AsyncMPIJob._viewed(stored, self.backend)
        return await AsyncMPIJobClient.create(self, job, name, namespace)

    get_job = AsyncMPIJobClient.get
    list_jobs = AsyncMPIJobClient.list
    get_job_status = AsyncMPIJobClient.status
    describe_job = AsyncMPIJobClient.describe
    wait_for_job_completion = AsyncMPIJobClient.wait
    watch_job = AsyncMPIJobClient.watch
    stream_job_events = AsyncMPIJobClient.events
    get_job_logs = AsyncMPIJobClient.logs
    get_job_metrics = AsyncMPIJobClient.metrics
    suspend_job = AsyncMPIJobClient.suspend
    resume_job = AsyncMPIJobClient.resume
    restart_job = AsyncMPIJobClient.restart
    delete_job = AsyncMPIJobClient.delete


class MPIJobClient(Client):
    __doc__ = Client.__doc__

    create = converting(AsyncMPIJobClient.create, MPIJob.like)
    get = converting(AsyncMPIJobClient.get, MPIJob.like)
    list = blocking(AsyncMPIJobClient.list)
    status = blocking(AsyncMPIJobClient.status)
    describe = blocking(AsyncMPIJobClient.describe)
    wait = blocking(AsyncMPIJobClient.wait)
    watch = iterating(AsyncMPIJobClient.watch)
    events = iterating(AsyncMPIJobClient.events)
    logs = iterating(AsyncMPIJobClient.logs)
    metrics = blocking(AsyncMPIJobClient.metrics)
    suspend = blocking(AsyncMPIJobClient.suspend)
    resume = blocking(AsyncMPIJobClient.resume)
    restart = blocking(AsyncMPIJobClient.restart)
    delete = blocking(AsyncMPIJobClient.delete)


class TrainingClient(Client):
    __doc__ = Client.__doc__

    create_mpi_job = converting(AsyncTrainingClient.create_mpi_job, MPIJob.like)
    get_job = MPIJobClient.get
    list_jobs = MPIJobClient.list
    get_job_status = MPIJobClient.status
    describe_job = MPIJobClient.describe
    wait_for_job_completion = MPIJobClient.wait
    watch_job = MPIJobClient.watch
    stream_job_events = MPIJobClient.events
    get_job_logs = MPIJobClient.logs
    get_job_metrics = MPIJobClient.metrics
    suspend_job = MPIJobClient.suspend
    resume_job = MPIJobClient.resume
    restart_job = MPIJobClient.restart
    delete_job = MPIJobClient.delete
