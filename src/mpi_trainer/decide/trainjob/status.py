"""A TrainJob's status while it is being written, by the rules of the public API.

Immutable: each verb returns another story. There are three conditions and no more, because clients
count on that; what else is to be told goes into annotations and events.
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
from mpi_trainer.decide.reasons import DecidedEvent
from mpi_trainer.decide.trainjob import status_annotations as f
from mpi_trainer.decide.trainjob.status_annotations import StatusAnnotations

replace = msgspec.structs.replace

RESUMED = "Resumed"
RETRIED = "PodFailed"


def find(status: TrainJobStatus, kind: str) -> TrainJobCondition | None:
    return next((c for c in status.conditions if c.type == kind), None)


def holds(status: TrainJobStatus, kind: str) -> bool:
    found = find(status, kind)
    return found is not None and found.status == TRUE


def finished(status: TrainJobStatus) -> bool:
    return holds(status, COMPLETE) or holds(status, FAILED)


class StatusBuilder(msgspec.Struct, frozen=True):
    """`begun` is when the last of the job's pods began, where that is known."""

    job: TrainJob
    now: datetime
    status: TrainJobStatus
    annotations: StatusAnnotations
    events: tuple[DecidedEvent, ...] = ()
    begun: datetime | None = None

    def suspended(self) -> StatusBuilder:
        story = self._set(SUSPENDED, TRUE, SUSPENDED, "TrainJob is suspended")
        if story is not self:
            story = story._event("Normal", SUSPENDED, "TrainJob is suspended")
        cleared = StatusAnnotations(
            phase=f.SUSPENDED, ttl=self.annotations.ttl, clean=self.annotations.clean
        )
        return replace(story, annotations=cleared)

    def resumed(self) -> StatusBuilder:
        """Pending, unless it runs already."""
        story = self
        if holds(self.status, SUSPENDED):
            story = self._set(SUSPENDED, FALSE, RESUMED, "TrainJob is resumed")
            story = story._event("Normal", RESUMED, "TrainJob is resumed")
        if story.annotations.phase in ("", f.RUNNING):
            return story
        return replace(story, annotations=replace(story.annotations, phase=f.PENDING))

    def waiting(self, why: str) -> StatusBuilder:
        if self.annotations.phase == f.RUNNING or why == self.annotations.cause:
            return self
        return replace(self, annotations=replace(self.annotations, phase=f.PENDING, cause=why))

    def retried(self, why: str) -> StatusBuilder:
        """It goes on, and what failed is told."""
        if why == self.annotations.cause:
            return self
        story = replace(self, annotations=replace(self.annotations, cause=why))
        return story._event("Warning", RETRIED, why)

    def running(self) -> StatusBuilder:
        if self.annotations.phase == f.RUNNING:
            return replace(self, annotations=replace(self.annotations, cause=""))
        since = f.to_text(self.begun or self.now)
        found = replace(self.annotations, phase=f.RUNNING, start_time=since, cause="")
        return replace(self, annotations=found)._event("Normal", f.RUNNING, "TrainJob is running")

    def complete(self, reason: str, message: str) -> StatusBuilder:
        """Told by the condition alone: the JobSet has an event of its own for it."""
        return self._set(COMPLETE, TRUE, reason, message)._over(f.SUCCEEDED, "")

    def failed(self, reason: str, message: str, cause: str) -> StatusBuilder:
        story = self._set(FAILED, TRUE, reason, message)._over(f.FAILED, cause)
        return story._event("Warning", reason, message)

    def warned(self, reason: str, message: str) -> StatusBuilder:
        return self._event("Warning", reason, message) if message else self

    def _over(self, phase: str, cause: str) -> StatusBuilder:
        """That it ran may not have been told yet."""
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
