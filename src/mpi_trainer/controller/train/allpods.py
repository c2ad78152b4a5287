"""All pods of one job, asked for at the moment when they matter.

Only pods that have ended are watched: a job of hundreds changes thousands of times before that, and
JobSet's counts tell whether it runs. What a job waits for only its living pods know.
"""

from __future__ import annotations

from mpi_trainer.api.trainjob import TrainJob
from mpi_trainer.controller.objects import Pod
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.lists import whole
from mpi_trainer.kube.resources import PODS
from mpi_trainer.layout.trainjob import LABEL_TRAINJOB


class AllPods:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def of(self, job: TrainJob) -> tuple[Pod, ...]:
        """As they are now, whatever the watch has told yet; one that cannot be read is left out."""
        labels = f"{LABEL_TRAINJOB}={job.name}"
        page = await whole(self._client, PODS, Pod, namespace=job.namespace, labels=labels)
        return page.items
