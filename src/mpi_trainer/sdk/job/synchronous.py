"""`MPIJob`: the job for programs and notebooks that do not care for `await`."""

from __future__ import annotations

from typing import Self

from mpi_trainer.sdk import event_loop
from mpi_trainer.sdk.backends.backend import Backend
from mpi_trainer.sdk.job.asynchronous import AsyncMPIJob
from mpi_trainer.sdk.job.base import Job
from mpi_trainer.sdk.synchronous import blocking, iterating


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
