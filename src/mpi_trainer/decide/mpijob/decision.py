"""What to do next about a job: plain values, carried out by an executor.

The order of carrying out is fixed: store `record`, store `status`, then stop, free, start, send
events. Between any two of these a crash is harmless. What is stopped is the pod that was seen (its
uid), never another of the same name.
A decision that changes nothing is a fixed point: the executor may sleep until `requeue_after`.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from mpi_trainer.api.kinds.mpijob import MPIJobStatus
from mpi_trainer.decide.observed import Record
from mpi_trainer.decide.reasons import DecidedEvent


class MPIJobDecision(msgspec.Struct, frozen=True):
    """`free` names healthy workers that are kept, but may still hold ranks of a failed attempt.

    To free a worker is to end such ranks and then to mark it as one of `record.attempt`; one that
    does not run yet holds none and is only marked. To delete a job is to stop its pods too.
    `resize`: the job has grown or shrunk under its launcher, and the files that name its hosts are
    to follow.
    """

    status: MPIJobStatus
    record: Record
    needs_key: bool = False
    start_workers: tuple[int, ...] = ()
    start_launcher: bool = False
    stop: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    delete_job: bool = False
    resize: bool = False
    events: tuple[DecidedEvent, ...] = ()
    requeue_after: timedelta | None = None

    @property
    def makes(self) -> bool:
        """Whether anything is made, or made anew."""
        return bool(self.needs_key or self.start_workers or self.start_launcher or self.resize)

    @property
    def acts(self) -> bool:
        """Whether anything is started, stopped, made or deleted."""
        return bool(self.makes or self.stop or self.free or self.delete_job)
