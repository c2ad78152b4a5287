"""Training jobs from Python: on a cluster where one is configured, else on this machine.

    from openshift_ai_sdk.training import MPIJob

    def train(epochs):
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        for epoch in range(1, epochs + 1):
            total = world.allreduce(world.rank)
            if world.rank == 0:
                print(f"epoch {epoch}/{epochs} loss {total / epoch:.3f}", flush=True)

    job = MPIJob.from_function(train, workers=2, slots=2, args=[3]).create()
    print(job.wait_for_completion(timeout=120, show=True))
    print(job.get_logs(rank=0))
    job.delete()

Which cluster, and as whom, is found as `connect()` says; `MPI_TRAINER_BACKEND=local` means this
machine, where jobs run with real MPI too.

The answers of `get_status()`, `wait_for_completion()` and `get_logs()` are text. `status`, `wait()`
and `logs()` say more: why and since when, by an exception what failed, and of each line its rank.

TrainJobs go the same way: `TrainJob`, `TrainJobClient`, or a function at once, as
`train(func, runtime="mpi-openmpi-cpu", num_nodes=2)`.

Each class has an asynchronous twin (`AsyncMPIJob`, `AsyncTrainingClient`, `AsyncMPIJobClient`)
with the same methods to `await` or iterate with `async for`. The synchronous ones may also be used
inside a running event loop, as in a notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds.mpijob import RunPolicy, SchedulingPolicy
from mpi_trainer.api.kinds.trainjob import RuntimeRef, Trainer, TrainJobSpec, TrainJobStatus
from mpi_trainer.check.report import CheckReport, CheckStep
from mpi_trainer.diagnose.finding import Finding
from mpi_trainer.diagnose.progress import Progress
from mpi_trainer.sdk.backends.backend import (
    EventInfo,
    JobDetails,
    JobSummary,
    LogLine,
    PodInfo,
    RankInfo,
    ReplicaCount,
)
from mpi_trainer.sdk.backends.usage import GpuUsage, PodUsage
from mpi_trainer.sdk.client.clients import (
    TORCH_DISTRIBUTED,
    AsyncMPIJobClient,
    AsyncTrainingClient,
    AsyncTrainJobClient,
    MPIJobClient,
    TrainingClient,
    TrainJobClient,
)
from mpi_trainer.sdk.client.connect import connect
from mpi_trainer.sdk.errors import (
    ClusterUnreachable,
    JobError,
    JobExists,
    JobFailed,
    JobNotFound,
    JobTimeout,
    K8sApiException,
    NotShippable,
    RuntimeNotFound,
    VolumeNotFound,
)
from mpi_trainer.sdk.job.mpijob import AsyncMPIJob, MPIJob
from mpi_trainer.sdk.job.specs import MPIJobSpec, ReplicaSpec, ResourceRequirements, VolumeMount
from mpi_trainer.sdk.job.state import JobList, JobMetrics, JobState
from mpi_trainer.sdk.job.trainjob import AsyncTrainJob, TrainingRuntime, TrainJob

ResourceSpec = ResourceRequirements
PodStatus = PodInfo
Event = EventInfo


def train(  # noqa: PLR0913 - the sides of a job; all but the function have defaults
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
) -> TrainJob:
    """Runs a function on the nodes of a runtime, and returns the TrainJob: `TrainJobClient.train`
    of a connection of its own."""
    return TrainJobClient().train(
        func,
        runtime=runtime,
        num_nodes=num_nodes,
        func_args=func_args,
        name=name,
        namespace=namespace,
        image=image,
        resources_per_node=resources_per_node,
        env=env,
        num_proc_per_node=num_proc_per_node,
    )


__all__ = [
    "AsyncMPIJob",
    "AsyncMPIJobClient",
    "AsyncTrainJob",
    "AsyncTrainJobClient",
    "AsyncTrainingClient",
    "CheckReport",
    "CheckStep",
    "ClusterUnreachable",
    "Event",
    "EventInfo",
    "Finding",
    "GpuUsage",
    "InvalidJob",
    "JobDetails",
    "JobError",
    "JobExists",
    "JobFailed",
    "JobList",
    "JobMetrics",
    "JobNotFound",
    "JobState",
    "JobSummary",
    "JobTimeout",
    "K8sApiException",
    "LogLine",
    "MPIJob",
    "MPIJobClient",
    "MPIJobSpec",
    "NotShippable",
    "PodInfo",
    "PodStatus",
    "PodUsage",
    "Progress",
    "RankInfo",
    "ReplicaCount",
    "ReplicaSpec",
    "ResourceRequirements",
    "ResourceSpec",
    "RunPolicy",
    "RuntimeNotFound",
    "RuntimeRef",
    "SchedulingPolicy",
    "TrainJob",
    "TrainJobClient",
    "TrainJobSpec",
    "TrainJobStatus",
    "Trainer",
    "TrainingClient",
    "TrainingRuntime",
    "VolumeMount",
    "VolumeNotFound",
    "connect",
    "train",
]
