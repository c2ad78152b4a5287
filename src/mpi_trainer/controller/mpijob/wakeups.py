"""Which job a change concerns, and how soon to look at it.

A launcher's change is what people wait for: at once. Workers come and go by the hundred within a
second, so theirs are gathered for a moment and looked at together: the longer the more of them
there are, since one look sees all of them. Jobs that have ended, and what they left, wait until
nothing else is to be done; so does what belongs to a job that is not known (yet): should it be
under way, its own coming makes it urgent.
"""

from __future__ import annotations

from typing import Final

from mpi_trainer.api.kinds.labels import LABEL_JOB, LABEL_ROLE
from mpi_trainer.controller.objects import Job, Pod, StoredJob
from mpi_trainer.runtime.partial import Key, key_of
from mpi_trainer.runtime.store import Store
from mpi_trainer.runtime.workqueue import WorkQueue

GATHER: Final = 0.05
EACH_POD: Final = 0.00025
"""seconds: a look takes a few per cent of what it is gathered for, however large the job"""
BY_JOB: Final = "job"
"""the index of pods and Jobs by the job that they name"""


class Wakeups:
    def __init__(self, queue: WorkQueue[Key], jobs: Store[StoredJob], pods: Store[Pod]) -> None:
        self._queue = queue
        self._jobs = jobs
        self._pods = pods

    def mpijob(self, old: StoredJob | None, new: StoredJob | None) -> None:
        found = new or old
        if found is not None:
            self._queue.add(key_of(found), urgent=is_urgent(old, new))

    def job(self, old: Job | None, new: Job | None) -> None:
        key = _key(new or old)
        if key is not None:
            self._queue.add(key, self._under_way(key))

    def pod(self, old: Pod | None, new: Pod | None) -> None:
        found = new or old
        key = _key(found)
        if key is None or found is None:
            return
        if found.metadata.labels.get(LABEL_ROLE) == "launcher":
            self._queue.add(key, self._under_way(key))
        else:
            pods = self._pods.count(BY_JOB, str(key))
            self._queue.add_after(key, max(GATHER, pods * EACH_POD), self._under_way(key))

    def _under_way(self, key: Key) -> bool:
        job = self._jobs.get(key)
        return job is not None and not job.finished


def is_urgent(old: StoredJob | None, new: StoredJob | None) -> bool:
    """Whether somebody waits for the change of a job.

    Nobody does for one that was found unchanged by a full list, nor for one that had ended before.
    """
    ended = new is not None and new.finished and (old is None or old.finished)
    return old is not new and not ended


def _key(found: Pod | Job | None) -> Key | None:
    name = found.metadata.labels.get(LABEL_JOB) if found is not None else None
    return None if found is None or name is None else Key(found.metadata.namespace, name)
