"""The jobs of a namespace, by name, for callers with `await` and without.

A client holds its own connection and nothing is shared between two of them. `MPIJobClient` has the
short verbs; `TrainingClient` is the same under the names that say what is meant. As with jobs,
methods of the Async classes say `self: Client`, so that the others are made from them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from datetime import datetime
from typing import Any, Final

from mpi_trainer.api.kinds import trainjob as api
from mpi_trainer.api.kinds.conditions import STATES
from mpi_trainer.api.kinds.trainjob import KIND, TrainJobSpec
from mpi_trainer.check.report import CheckReport
from mpi_trainer.sdk.backends.backend import Backend, EventInfo, JobDetails, LogLine
from mpi_trainer.sdk.client.connect import connect
from mpi_trainer.sdk.errors import K8sApiException, RuntimeNotFound
from mpi_trainer.sdk.job.handle import AsyncOperations
from mpi_trainer.sdk.job.mpijob import AsyncMPIJob, Job, MPIJob
from mpi_trainer.sdk.job.specs import MPIJobSpec, ResourceRequirements
from mpi_trainer.sdk.job.state import JobList, JobMetrics, JobState
from mpi_trainer.sdk.job.trainjob import (
    AsyncTrainJob,
    TrainingRuntime,
    TrainJob,
    TrainJobBase,
    find_runtime,
    training_runtime,
)
from mpi_trainer.sdk.synchronous import blocking, converting, iterating

TORCH_DISTRIBUTED: Final = "torch-distributed"
"""the runtime of `train`, as in Kubeflow's own SDK"""


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

    @property
    def _jobs(self) -> Backend:
        """The backend, where only those jobs are seen that this client is for."""
        return self.backend

    def _followed(self, name: str, namespace: str | None) -> AsyncOperations:
        """A job that is only looked at, so that it need not be fetched before."""
        return AsyncMPIJob(name, namespace or self.namespace, backend=self.backend)

    async def _has_runtime(self, job: api.TrainJob) -> bool:
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
        return await AsyncMPIJob.get(name, namespace or self.namespace, backend=self.backend)

    async def list(
        self: Client,
        namespace: str | None = None,
        *,
        all_namespaces: bool = False,
        state: str | None = None,
    ) -> JobList:
        """Jobs, newest first; with `state` only those in it, such as `Running`.

        Raises:
            ValueError: There is no such state.
        """
        if state not in (None, *STATES):
            raise ValueError(f"state: {state!r} is not one of {', '.join(STATES)}")
        found = await self._jobs.list(None if all_namespaces else namespace or self.namespace)
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
        until: datetime | None = None,
        grep: str | None = None,
        level: str = "",
        attempt: int | None = None,
        pod: str = "",
        all_pods: bool = False,
    ) -> AsyncIterator[LogLine]:
        """The lines that the job wrote, each with its rank, pod and time.

        Which lines is chosen as for `MPIJob.logs`.
        """
        job = self._followed(name, namespace)
        return job.logs(
            worker_index,
            rank,
            follow,
            tail=tail,
            since=since,
            until=until,
            grep=grep,
            level=level,
            attempt=attempt,
            pod=pod,
            all_pods=all_pods,
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


class _TrainJobs(Client):
    @property
    def _jobs(self) -> Backend:
        return self.backend.of_kind(KIND)

    def _followed(self, name: str, namespace: str | None) -> AsyncOperations:
        spec = TrainJobSpec()
        space = namespace or self.namespace
        return AsyncTrainJob.from_spec(name, spec, space, backend=self.backend)


class AsyncTrainJobClient(_TrainJobs):
    """A client for the TrainJobs of a namespace, and for the runtimes that they can name.

    Args:
        namespace: The namespace where a method is given none; by default the connection's own.
        backend: Where the jobs run; by default as `connect()` finds.
    """

    async def create(
        self: Client,
        job: TrainJobBase | TrainJobSpec | Mapping[str, Any] | str,
        name: str | None = None,
        namespace: str | None = None,
    ) -> AsyncTrainJob:
        """Submits a TrainJob and returns it.

        Args:
            job: A TrainJob, a TrainJobSpec (then `name` is needed), or a manifest: its text, or
                the same as a dict.
            name: The job's name, for a spec.
            namespace: The job's namespace, for a spec.

        Raises:
            ValueError: The job makes no sense, or (JobExists) its name is taken.
        """
        if isinstance(job, TrainJobBase):
            made = AsyncTrainJob._of(job._definition, self.backend)
            made._program = job._program
        elif isinstance(job, TrainJobSpec):
            if not name:
                raise ValueError("name is missing: a spec has none; write create(spec, name=...)")
            space = namespace or self.namespace
            made = AsyncTrainJob.from_spec(name, job, space, backend=self.backend)
        else:
            made = AsyncTrainJob.from_manifest(job, backend=self.backend)
        return await made.create()

    async def get(self: Client, name: str, namespace: str | None = None) -> AsyncTrainJob:
        """The TrainJob of that name.

        Raises:
            JobNotFound: There is none.
        """
        return await AsyncTrainJob.get(name, namespace or self.namespace, backend=self.backend)

    async def train(  # noqa: PLR0913 - the sides of a job; all but the function have defaults
        self: Client,
        func: Callable[..., object],
        *,
        runtime: str = TORCH_DISTRIBUTED,
        num_nodes: int | None = None,
        func_args: Mapping[str, object] | None = None,
        name: str | None = None,
        namespace: str | None = None,
        image: str | None = None,
        resources_per_node: ResourceRequirements | None = None,
        env: Mapping[str, str] | None = None,
        num_proc_per_node: int | None = None,
    ) -> AsyncTrainJob:
        """Runs a function on the nodes of a runtime, and returns the TrainJob.

        Args:
            func: What every rank calls; its source travels with the job.
            runtime: A TrainingRuntime of the namespace, or else a ClusterTrainingRuntime.
            num_nodes: How many nodes; by default as many as the runtime says.
            func_args: The function's arguments by name; they have to be JSON.
            name: The job's name; by default the function's, and something of its own.
            namespace: The job's namespace; by default the client's.
            image: The container image; by default the runtime's.
            resources_per_node: What each node needs.
            env: Variables for every node.
            num_proc_per_node: Ranks on each node; by default as many as the runtime says.

        Raises:
            NotShippable: The function needs something that cannot travel; names it and its line.
            RuntimeNotFound: There is no such runtime.
        """
        space = namespace or self.namespace
        found = await find_runtime(self.backend, runtime, space)
        job = AsyncTrainJob.from_function(
            func,
            runtime=runtime,
            kwargs=func_args,
            name=name,
            namespace=space,
            num_nodes=num_nodes,
            image=image,
            resources=resources_per_node,
            env=env,
            num_proc_per_node=num_proc_per_node,
            runtime_kind=found.kind,
            backend=self.backend,
        )
        return await job.create()

    async def list_runtimes(self: Client, namespace: str | None = None) -> list[TrainingRuntime]:
        """The runtimes that a TrainJob of this namespace can name: its own, and the cluster's."""
        found = await self.backend.runtimes(namespace or self.namespace)
        return [training_runtime(one) for one in found]

    async def get_runtime(
        self: Client, name: str, namespace: str | None = None, kind: str = ""
    ) -> TrainingRuntime:
        """The runtime of that name; without a `kind` the namespace's own before the cluster's.

        Raises:
            RuntimeNotFound: There is none.
        """
        space = namespace or self.namespace
        return training_runtime(await find_runtime(self.backend, name, space, kind))

    async def test_runtime(
        self: Client,
        name: str,
        namespace: str | None = None,
        kind: str = "",
        timeout: float = 300.0,  # noqa: ASYNC109 - the word that users know
        smoke_run: bool = True,
    ) -> CheckReport:
        """Whether jobs of this runtime can work: what reading shows, then a smoke run of two nodes
        with one rank each, which is removed afterwards.

        Args:
            name: The runtime's name, found as `get_runtime` finds it.
            namespace: Where the smoke run goes; by default the client's.
            kind: TrainingRuntime or ClusterTrainingRuntime.
            timeout: Seconds after which the smoke run is given up.
            smoke_run: False only reads the runtime.

        Raises:
            RuntimeNotFound: There is none.
        """
        from mpi_trainer.sdk.job.check import Target, check

        space = namespace or self.namespace
        found = await find_runtime(self.backend, name, space, kind)
        target = Target(found, found)
        return await check(self.backend, target, space, timeout=timeout, smoke_run=smoke_run)

    list = AsyncMPIJobClient.list
    status = AsyncMPIJobClient.status
    describe = AsyncMPIJobClient.describe
    wait = AsyncMPIJobClient.wait
    watch = AsyncMPIJobClient.watch
    events = AsyncMPIJobClient.events
    logs = AsyncMPIJobClient.logs
    metrics = AsyncMPIJobClient.metrics
    suspend = AsyncMPIJobClient.suspend
    resume = AsyncMPIJobClient.resume
    restart = AsyncMPIJobClient.restart
    delete = AsyncMPIJobClient.delete


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
            from mpi_trainer.sdk.job import trainjob_specs

            described = trainjob_specs.trainjob_from_spec(job, name, namespace or self.namespace)
            if described is not None and await self._has_runtime(described):
                stored = await self.backend.create_trainjob(described)
                return AsyncMPIJob._viewed(stored, self.backend)
        return await AsyncMPIJobClient.create(self, job, name, namespace)

    create_train_job = AsyncTrainJobClient.create
    train = AsyncTrainJobClient.train
    list_runtimes = AsyncTrainJobClient.list_runtimes
    get_runtime = AsyncTrainJobClient.get_runtime
    test_runtime = AsyncTrainJobClient.test_runtime
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


class TrainJobClient(_TrainJobs):
    __doc__ = AsyncTrainJobClient.__doc__

    create = converting(AsyncTrainJobClient.create, TrainJob.like)
    get = converting(AsyncTrainJobClient.get, TrainJob.like)
    train = converting(AsyncTrainJobClient.train, TrainJob.like)
    list_runtimes = blocking(AsyncTrainJobClient.list_runtimes)
    get_runtime = blocking(AsyncTrainJobClient.get_runtime)
    test_runtime = blocking(AsyncTrainJobClient.test_runtime)
    list = MPIJobClient.list
    status = MPIJobClient.status
    describe = MPIJobClient.describe
    wait = MPIJobClient.wait
    watch = MPIJobClient.watch
    events = MPIJobClient.events
    logs = MPIJobClient.logs
    metrics = MPIJobClient.metrics
    suspend = MPIJobClient.suspend
    resume = MPIJobClient.resume
    restart = MPIJobClient.restart
    delete = MPIJobClient.delete


class TrainingClient(Client):
    __doc__ = Client.__doc__

    create_mpi_job = converting(AsyncTrainingClient.create_mpi_job, MPIJob.like)
    create_train_job = TrainJobClient.create
    train = TrainJobClient.train
    list_runtimes = TrainJobClient.list_runtimes
    get_runtime = TrainJobClient.get_runtime
    test_runtime = TrainJobClient.test_runtime
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
