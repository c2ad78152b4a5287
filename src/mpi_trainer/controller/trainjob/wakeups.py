"""Which TrainJob a change concerns, and how soon to look at it.

JobSet runs the job, so its end is what people wait for: at once, and so is the launcher's, which
says what the ranks did. Its counts and other pods' ends come by the hundred and change only what is
shown: half a second later is soon enough.
"""

from __future__ import annotations

from typing import Final

from mpi_trainer.api.effective.combine import LAUNCHER
from mpi_trainer.api.kinds.labels import LABEL_REPLICATED_JOB, LABEL_TRAINJOB
from mpi_trainer.controller.objects import JobSet, Pod, StoredJob
from mpi_trainer.controller.wakeups import JobWakeups
from mpi_trainer.kube.resources import TRAINJOBS
from mpi_trainer.runtime.partial import Key, key_of
from mpi_trainer.runtime.store import Store
from mpi_trainer.runtime.workqueue import WorkQueue

GATHER: Final = 0.5


class Wakeups(JobWakeups):
    def __init__(self, queue: WorkQueue[Key], jobs: Store[StoredJob]) -> None:
        super().__init__(queue, jobs, TRAINJOBS)

    def jobset_changed(self, old: JobSet | None, new: JobSet | None) -> None:
        """It has its job's name."""
        found = new or old
        if found is None:
            return
        ends = old is None or new is None or old.status.conditions != new.status.conditions
        self._add(key_of(found), 0.0 if ends else GATHER)

    def ended_pod_changed(self, _: Pod | None, new: Pod | None) -> None:
        """One that is gone has nothing more to tell."""
        name = new.metadata.labels.get(LABEL_TRAINJOB) if new is not None else None
        if new is None or name is None:
            return
        launcher = new.metadata.labels.get(LABEL_REPLICATED_JOB) == LAUNCHER
        self._add(Key(new.metadata.namespace, name), 0.0 if launcher else GATHER)
