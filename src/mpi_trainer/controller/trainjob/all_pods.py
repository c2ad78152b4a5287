"""All pods of a job, asked for at the moment when they matter.

Only pods that have ended are watched: a job of hundreds changes thousands of times before that, and
JobSet's counts tell whether it runs. What a job waits for only its living pods know. On a cluster
that is full many jobs wait, and ask within moments of each other: one list answers them all.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.controller.objects import Pod
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.lists import whole
from mpi_trainer.kube.resources import PODS
from mpi_trainer.layout.trainjob import LABEL_TRAINJOB
from mpi_trainer.runtime.coalesce import Coalesce

GATHER: Final = 0.2
"""seconds; who asks has waited for ten, or looks at a resumption every half a second"""


class AllPods:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._asked: defaultdict[str, set[str]] = defaultdict(set)
        self._lists = Coalesce(self._list, GATHER)

    async def of(self, job: TrainJob) -> tuple[Pod, ...]:
        """As they are now, whatever the watch has told yet; one that cannot be read is left out."""
        self._asked[job.namespace].add(job.name)
        found = await self._lists.get(job.namespace)
        return tuple(found.get(job.name, ()))

    async def _list(self, namespace: str) -> dict[str, list[Pod]]:
        """Those of all jobs of the namespace that were asked for, by their jobs."""
        labels = f"{LABEL_TRAINJOB} in ({','.join(sorted(self._asked.pop(namespace)))})"
        page = await whole(self._client, PODS, Pod, namespace=namespace, labels=labels)
        found: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in page.items:
            found[pod.metadata.labels[LABEL_TRAINJOB]].append(pod)
        return found
