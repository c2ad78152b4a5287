"""The clients for programs and notebooks that do not care for `await`."""

from __future__ import annotations

from mpi_trainer.sdk.client.asynchronous import AsyncMPIJobClient as Verbs
from mpi_trainer.sdk.client.asynchronous import AsyncTrainingClient, Client
from mpi_trainer.sdk.job.synchronous import MPIJob
from mpi_trainer.sdk.synchronous import blocking, converting, iterating


class MPIJobClient(Client):
    __doc__ = Client.__doc__

    create = converting(Verbs.create, MPIJob.like)
    get = converting(Verbs.get, MPIJob.like)
    list = blocking(Verbs.list)
    status = blocking(Verbs.status)
    describe = blocking(Verbs.describe)
    wait = blocking(Verbs.wait)
    watch = iterating(Verbs.watch)
    events = iterating(Verbs.events)
    logs = iterating(Verbs.logs)
    metrics = blocking(Verbs.metrics)
    suspend = blocking(Verbs.suspend)
    resume = blocking(Verbs.resume)
    restart = blocking(Verbs.restart)
    delete = blocking(Verbs.delete)


class TrainingClient(Client):
    __doc__ = Client.__doc__

    create_mpi_job = converting(AsyncTrainingClient.create_mpi_job, MPIJob.like)
    get_job = converting(Verbs.get, MPIJob.like)
    list_jobs = blocking(Verbs.list)
    get_job_status = blocking(Verbs.status)
    describe_job = blocking(Verbs.describe)
    wait_for_job_completion = blocking(Verbs.wait)
    watch_job = iterating(Verbs.watch)
    stream_job_events = iterating(Verbs.events)
    get_job_logs = iterating(Verbs.logs)
    get_job_metrics = blocking(Verbs.metrics)
    suspend_job = blocking(Verbs.suspend)
    resume_job = blocking(Verbs.resume)
    restart_job = blocking(Verbs.restart)
    delete_job = blocking(Verbs.delete)
