"""Which MPIJob a change concerns, and how soon to look at it.

A launcher's change is what people wait for: at once. Workers come and go by the hundred within a
second, so their changes are gathered for a moment, the longer the more of them there are: one pass
sees all of them.
"""

from __future__ import annotations

from typing import Final

from mpi_trainer.api.kinds.labels import LABEL_JOB, LABEL_ROLE
from mpi_trainer.controller.objects import Job, Pod, StoredJob
from mpi_trainer.controller.wakeups import JobWakeups
from mpi_trainer.kube.resources import MPIJOBS
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.store import Store
from mpi_trainer.runtime.workqueue import WorkQueue

GATHER: Final = 0.05
EACH_POD: Final = 0.00025
"""seconds: a pass takes a few per cent of what it is gathered for, however large the job"""
BY_JOB: Final = "job"
"""the index of pods and Jobs by the job that they name"""


class Wakeups(JobWakeups):
    def __init__(self, queue: WorkQueue[Key], jobs: Store[StoredJob], pods: Store[Pod]) -> None:
        super().__init__(queue, jobs, MPIJOBS)
        self._pods = pods

    def launcher_job_changed(self, old: Job | None, new: Job | None) -> None:
        key = _key(new or old)
        if key is not None:
            self._add(key)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        found = new or old
        key = _key(found)
        if key is None or found is None:
            return
        if found.metadata.labels.get(LABEL_ROLE) == "launcher":
            self._add(key)
        else:
            self._add(key, max(GATHER, self._pods.count(BY_JOB, str(key)) * EACH_POD))


def _key(found: Pod | Job | None) -> Key | None:
    name = found.metadata.labels.get(LABEL_JOB) if found is not None else None
    return None if found is None or name is None else Key(found.metadata.namespace, name)
