"""Which TrainJob a change concerns, and how soon to look at it.

JobSet runs the job, so its end is what people wait for: at once, and so is its launcher's, which
says what the ranks did. Its counts and other pods' ends are looked at to tell of them, hundreds at
a time; half a second later is soon enough. Jobs that have ended wait until nothing else is to do,
as do MPIJobs.
"""

from __future__ import annotations

from typing import Final

from mpi_trainer.api.effective.combine import LAUNCHER
from mpi_trainer.api.kinds.labels import LABEL_REPLICATED_JOB, LABEL_TRAINJOB
from mpi_trainer.controller.mpijob.wakeups import is_urgent
from mpi_trainer.controller.objects import Pod, StoredJob
from mpi_trainer.controller.trainjob.objects import JobSet
from mpi_trainer.runtime.partial import Key, key_of
from mpi_trainer.runtime.store import Store
from mpi_trainer.runtime.workqueue import WorkQueue

GATHER: Final = 0.5


class Wakeups:
    def __init__(self, queue: WorkQueue[Key], jobs: Store[StoredJob]) -> None:
        self._queue = queue
        self._jobs = jobs

    def trainjob(self, old: StoredJob | None, new: StoredJob | None) -> None:
        found = new or old
        if found is not None:
            self._queue.add(key_of(found), urgent=is_urgent(old, new))

    def jobset(self, old: JobSet | None, new: JobSet | None) -> None:
        """It has its job's name."""
        found = new or old
        if found is None:
            return
        key = key_of(found)
        if old is None or new is None or old.status.conditions != new.status.conditions:
            self._queue.add(key, self._under_way(key))
        else:
            self._queue.add_after(key, GATHER, self._under_way(key))

    def ended_pod(self, _: Pod | None, new: Pod | None) -> None:
        """One that is gone has nothing more to tell."""
        name = new.metadata.labels.get(LABEL_TRAINJOB) if new is not None else None
        if new is None or name is None:
            return
        key = Key(new.metadata.namespace, name)
        if new.metadata.labels.get(LABEL_REPLICATED_JOB) == LAUNCHER:
            self._queue.add(key, self._under_way(key))
        else:
            self._queue.add_after(key, GATHER, self._under_way(key))

    def _under_way(self, key: Key) -> bool:
        job = self._jobs.get(key)
        return job is not None and not job.finished
