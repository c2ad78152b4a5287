"""When a change of a job, or of something that belongs to it, leads to a pass over the job."""

from __future__ import annotations

from mpi_trainer.controller.objects import KeptChild, StoredJob
from mpi_trainer.kube.resources import Resource
from mpi_trainer.runtime.partial import Key, key_of
from mpi_trainer.runtime.store import Store
from mpi_trainer.runtime.workqueue import WorkQueue


class JobWakeups:
    """What both kinds have in common. Jobs that have ended, and what they left, wait until nothing
    else is to be done; so does what belongs to a job that is not known (yet): should it be under
    way, its own arrival makes it urgent."""

    def __init__(self, queue: WorkQueue[Key], jobs: Store[StoredJob], kind: Resource) -> None:
        self._queue = queue
        self._jobs = jobs
        self._kind = kind

    def job_changed(self, old: StoredJob | None, new: StoredJob | None) -> None:
        found = new or old
        if found is not None:
            self._queue.add(key_of(found), urgent=is_urgent(old, new))

    def kept_child_changed(self, old: KeptChild | None, new: KeptChild | None) -> None:
        """Whose it is, or was, its owner reference says. What others write of its state, as gang
        schedulers do about once a second, is nothing to put right."""
        if old is not None and new is not None and _compared(old) == _compared(new):
            return
        keys: dict[Key, None] = {}
        for found in (old, new):
            holder = None if found is None else found.metadata.controller()
            if found is not None and holder is not None and holder.of(self._kind):
                keys[Key(found.metadata.namespace, holder.name)] = None
        for key in keys:
            self._add(key)

    def _add(self, key: Key, after: float = 0.0) -> None:
        """For something that belongs to the job."""
        job = self._jobs.get(key)
        self._queue.add_after(key, after, urgent=job is not None and not job.finished)


def _compared(child: KeptChild) -> tuple[object, ...]:
    """All that a pass looks at."""
    meta = child.metadata
    return meta.uid, meta.owner_references, meta.deletion_timestamp, bytes(child.spec)


def is_urgent(old: StoredJob | None, new: StoredJob | None) -> bool:
    """Whether somebody waits for the change of a job.

    Nobody does for one that was found unchanged by a full list, nor for one that had ended before.
    """
    ended = new is not None and new.finished and (old is None or old.finished)
    return old is not new and not ended
