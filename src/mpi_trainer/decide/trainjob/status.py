"""A TrainJob's status while it is being built, by the rules of the public API.

Immutable: each method returns another builder. There are three conditions and no more, because
clients count on that; what else is known goes into annotations and events.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from mpi_trainer.api.kinds.conditions import FALSE, TRUE
from mpi_trainer.api.kinds.trainjob import (
    COMPLETE,
    FAILED,
    SUSPENDED,
    TrainJob,
    TrainJobCondition,
    TrainJobStatus,
)
from mpi_trainer.decide import reasons
from mpi_trainer.decide.reasons import DecidedEvent
from mpi_trainer.decide.trainjob import status_annotations as f
from mpi_trainer.decide.trainjob.status_annotations import StatusAnnotations

replace = msgspec.structs.replace


def find(status: TrainJobStatus, kind: str) -> TrainJobCondition | None:
    return next((c for c in status.conditions if c.type == kind), None)


def holds(status: TrainJobStatus, kind: str) -> bool:
    found = find(status, kind)
    return found is not None and found.status == TRUE


def finished(status: TrainJobStatus) -> bool:
    return holds(status, COMPLETE) or holds(status, FAILED)


def ended_at(job: TrainJob, annotations: StatusAnnotations) -> datetime | None:
    """The end as written; a job that another controller ended has a condition alone."""
    ends = (c for c in job.status.conditions if c.status == TRUE and c.type != SUSPENDED)
    return f.to_time(annotations.completion_time) or next(
        (c.last_transition_time for c in ends), None
    )


class StatusBuilder(msgspec.Struct, frozen=True):
    """`begun` is when the last of the job's pods began, where that is known."""

    job: TrainJob
    now: datetime
    status: TrainJobStatus
    annotations: StatusAnnotations
    events: tuple[DecidedEvent, ...] = ()
    begun: datetime | None = None

    def suspended(self) -> StatusBuilder:
        builder = self._set(SUSPENDED, TRUE, SUSPENDED, "TrainJob is suspended")
        if builder is not self:
            builder = builder._event("Normal", SUSPENDED, "TrainJob is suspended")
        cleared = StatusAnnotations(
            phase=f.SUSPENDED, ttl=self.annotations.ttl, clean=self.annotations.clean
        )
        return replace(builder, annotations=cleared)

    def resumed(self) -> StatusBuilder:
        """Pending, unless it runs already."""
        builder = self
        if holds(self.status, SUSPENDED):
            builder = self._set(SUSPENDED, FALSE, reasons.RESUMED_TRAINJOB, "TrainJob is resumed")
            builder = builder._event("Normal", reasons.RESUMED_TRAINJOB, "TrainJob is resumed")
        if builder.annotations.phase in ("", f.RUNNING):
            return builder
        return replace(builder, annotations=replace(builder.annotations, phase=f.PENDING))

    def waiting(self, why: str) -> StatusBuilder:
        if self.annotations.phase == f.RUNNING or why == self.annotations.cause:
            return self
        return replace(self, annotations=replace(self.annotations, phase=f.PENDING, cause=why))

    def retried(self, why: str) -> StatusBuilder:
        """It goes on after a failure."""
        if why == self.annotations.cause:
            return self
        builder = replace(self, annotations=replace(self.annotations, cause=why))
        return builder._event("Warning", reasons.RETRIED_TRAINJOB, why)

    def running(self) -> StatusBuilder:
        if self.annotations.phase == f.RUNNING:
            return replace(self, annotations=replace(self.annotations, cause=""))
        since = f.to_text(self.begun or self.now)
        found = replace(self.annotations, phase=f.RUNNING, start_time=since, cause="")
        return replace(self, annotations=found)._event("Normal", f.RUNNING, "TrainJob is running")

    def complete(self, reason: str, message: str) -> StatusBuilder:
        """By the condition alone: the JobSet has an event of its own for it."""
        return self._set(COMPLETE, TRUE, reason, message)._with_end(f.SUCCEEDED, "")

    def failed(self, reason: str, message: str, cause: str = "") -> StatusBuilder:
        """`cause` is what the annotation says, where that is not the whole message."""
        builder = self._set(FAILED, TRUE, reason, message)._with_end(f.FAILED, cause or message)
        return builder._event("Warning", reason, message)

    def warned(self, reason: str, message: str) -> StatusBuilder:
        return self._event("Warning", reason, message) if message else self

    def _with_end(self, phase: str, cause: str) -> StatusBuilder:
        """That it ran may not have been written yet."""
        found = self.annotations
        since = found.start_time or (f.to_text(self.begun) if self.begun is not None else "")
        ended = f.to_text(self.now)
        found = replace(found, phase=phase, start_time=since, completion_time=ended, cause=cause)
        return replace(self, annotations=found)

    def _set(self, kind: str, truth: str, reason: str, message: str) -> StatusBuilder:
        old = find(self.status, kind)
        if old is not None and (old.status, old.reason, old.message) == (truth, reason, message):
            return self
        kept = old is not None and old.status == truth
        since = old.last_transition_time if old is not None and kept else self.now
        new = TrainJobCondition(
            type=kind, status=truth, reason=reason, message=message, last_transition_time=since
        )
        others = tuple(c for c in self.status.conditions if c.type != kind)
        return replace(self, status=replace(self.status, conditions=(*others, new)))

    def _event(self, weight: Literal["Normal", "Warning"], reason: str, text: str) -> StatusBuilder:
        return replace(self, events=(*self.events, DecidedEvent(weight, reason, text)))
