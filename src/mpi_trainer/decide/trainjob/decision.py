"""What to do next about a TrainJob: plain values, carried out by the controller.

The order of carrying out is fixed: store annotations, store status, then remove, change or make the
JobSet. Between any two of these a crash is harmless. Making stands for all children, and a second
making finds the first.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from mpi_trainer.api.kinds.trainjob import TrainJobStatus
from mpi_trainer.decide.reasons import DecidedEvent
from mpi_trainer.decide.trainjob.status_annotations import StatusAnnotations


class TrainJobDecision(msgspec.Struct, frozen=True):
    """`renew` is of a suspended JobSet that is not what it should be: to be changed, or replaced
    where it may not be."""

    status: TrainJobStatus
    annotations: StatusAnnotations
    make: bool = False
    suspend: bool | None = None
    renew: bool = False
    remove: bool = False
    delete_job: bool = False
    events: tuple[DecidedEvent, ...] = ()
    requeue_after: timedelta | None = None

    @property
    def starts(self) -> bool:
        """Whether pods are to come."""
        return self.make or self.suspend is False

    @property
    def acts(self) -> bool:
        return bool(
            self.make or self.renew or self.remove or self.delete_job or self.suspend is not None
        )
