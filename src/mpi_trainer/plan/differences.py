"""What applying a job file would change on a cluster: every job and runtime in it."""

from __future__ import annotations

from mpi_trainer.api.yaml.load import JobFile
from mpi_trainer.kube.client import Client
from mpi_trainer.plan.comparison import Difference
from mpi_trainer.plan.mpijob_differences import mpijob_differences
from mpi_trainer.plan.objects import named
from mpi_trainer.plan.trainjob_differences import runtime_differences, trainjob_differences


async def file_differences(
    client: Client, file: JobFile, namespace: str, domain: str
) -> list[Difference]:
    """`namespace` is for what names none, `domain` the cluster's own."""
    runtimes = [named(one, namespace) for one in file.runtimes]
    found: list[Difference] = []
    for runtime in runtimes:
        found += await runtime_differences(client, runtime)
    for job in (named(one, namespace) for one in file.jobs):
        found += await mpijob_differences(client, job, domain)
    for train_job in (named(one, namespace) for one in file.train_jobs):
        found += await trainjob_differences(client, train_job, runtimes, domain)
    return found
