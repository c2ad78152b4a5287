"""Which job a change concerns, and how soon to look at it.

A launcher's change is what people wait for: at once. Workers come and go by the hundred within a
second, so theirs are gathered for a moment and looked at together.
"""

from __future__ import annotations

from typing import Final

from mpi_trainer.controller.objects import Job, Pod, StoredJob
from mpi_trainer.layout.mpijob import LABEL_JOB, LABEL_ROLE
from mpi_trainer.runtime.partial import Key, key_of
from mpi_trainer.runtime.workqueue import WorkQueue

GATHER: Final = 0.05


class Wakeups:
    def __init__(self, queue: WorkQueue[Key]) -> None:
        self._queue = queue

    def mpijob(self, old: StoredJob | None, new: StoredJob | None) -> None:
        found = new or old
        if found is not None:
            # An unchanged one comes from a full list, which nobody waits for.
            self._queue.add(key_of(found), urgent=old is not new)

    def job(self, old: Job | None, new: Job | None) -> None:
        key = _key(new or old)
        if key is not None:
            self._queue.add(key)

    def pod(self, old: Pod | None, new: Pod | None) -> None:
        found = new or old
        key = _key(found)
        if key is None or found is None:
            return
        if found.metadata.labels.get(LABEL_ROLE) == "launcher":
            self._queue.add(key)
        else:
            self._queue.add_after(key, GATHER)


def _key(found: Pod | Job | None) -> Key | None:
    name = found.metadata.labels.get(LABEL_JOB) if found is not None else None
    return None if found is None or name is None else Key(found.metadata.namespace, name)
