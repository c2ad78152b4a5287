"""An MPIJob's status while it is being built: every change of a condition is also an event.

Immutable: each method returns another builder. There is an event only where a client can see the
condition change, so two passes over the same job tell nothing twice.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.mpijob import MPIJob, MPIJobStatus
from mpi_trainer.decide import reasons
from mpi_trainer.decide.observed import Failure, Record
from mpi_trainer.decide.reasons import DecidedEvent
from mpi_trainer.diagnose.suspicion import WORDS

replace = msgspec.structs.replace


class StatusBuilder(msgspec.Struct, frozen=True):
    job: MPIJob
    now: datetime
    status: MPIJobStatus
    events: tuple[DecidedEvent, ...] = ()

    def created(self) -> StatusBuilder:
        if c.find(self.status.conditions, c.CREATED):
            return self
        return self._set_true(c.CREATED, reasons.CREATED, f"{self._name} is created.")

    def started(self) -> StatusBuilder:
        if self.status.start_time is not None:
            return self
        return replace(self, status=replace(self.status, start_time=self.now))

    def running(self) -> StatusBuilder:
        if c.holds(self.status.conditions, c.RUNNING):
            return self
        return self._set_true(c.RUNNING, reasons.RUNNING, f"{self._name} is running.")._set_false(
            c.RESTARTING, reasons.RESTARTED, "The new attempt is running."
        )

    def suspected(self, suspicion: str) -> StatusBuilder:
        """Running, and stuck as it seems; or no longer, where there is no `suspicion`. A mark and
        no more: nothing is ended for it, and it is told once."""
        before = c.find(self.status.conditions, c.RUNNING)
        marked = before is not None and WORDS in before.message
        if suspicion:
            text = f"{self._name} is running, and {WORDS}{suspicion}."
            builder = self._set(c.RUNNING, c.TRUE, reasons.RUNNING, text)
            return builder if marked else builder._event("Warning", reasons.NO_PROGRESS, text)
        if not marked:
            return self
        text = f"{self._name} is running."
        return self._set(c.RUNNING, c.TRUE, reasons.RUNNING, text)._event(
            "Normal", reasons.PROGRESS, f"{self._name} goes on."
        )

    def waiting(self, text: str) -> StatusBuilder:
        """Not running yet, and why. The condition is written again and again; the event comes once,
        with the first repetition, so that a job that is merely slow to start costs none."""
        before = c.find(self.status.conditions, c.RUNNING)
        builder = self._set(c.RUNNING, c.FALSE, reasons.WAITING, text)
        repeated = before is not None and before.reason == reasons.WAITING
        if before is None or not repeated or before.last_update_time != before.last_transition_time:
            return builder
        return builder._event("Warning", reasons.WAITING, text)

    def restarting(self, record: Record, limit: int) -> StatusBuilder:
        """Between two attempts. After a suspension there is no failure to report."""
        text = _retry(record, limit, "follows")
        builder = self._set_false(c.RUNNING, reasons.RESTARTING, "A new attempt will start.")
        return (
            builder._set_true(c.RESTARTING, reasons.RESTARTING, text, "Warning")
            if text
            else builder
        )

    def retrying(self, record: Record, limit: int) -> StatusBuilder:
        """The delay is over. Still Restarting, until the new attempt runs."""
        text = _retry(record, limit, "has begun")
        return self._set(c.RESTARTING, c.TRUE, reasons.RESTARTING, text) if text else self

    def attempt_failed(self, failure: Failure) -> StatusBuilder:
        """An event, for readers of events only: the status says it with the restart or the end."""
        return self._event("Warning", failure.reason, failure.message)

    def placement_warned(self, text: str) -> StatusBuilder:
        """An event about where ranks ran; none where there is no `text`."""
        return self._event("Warning", reasons.PLACEMENT_SURPRISING, text) if text else self

    def workers_released(self, text: str) -> StatusBuilder:
        """An event: healthy workers are given back, and what an administrator can do."""
        return self._event("Warning", reasons.RELEASED, text)

    def suspended(self) -> StatusBuilder:
        if c.holds(self.status.conditions, c.SUSPENDED) and self.status.start_time is None:
            return self
        text = f"{self._name} is suspended."
        builder = self._set_true(c.SUSPENDED, reasons.SUSPENDED, f"{self.job.kind} suspended")
        builder = builder._set(c.RUNNING, c.FALSE, reasons.SUSPENDED, text)
        builder = builder._set_false(c.RESTARTING, reasons.SUSPENDED, text)
        return replace(builder, status=replace(builder.status, start_time=None))

    def resumed(self) -> StatusBuilder:
        if not c.holds(self.status.conditions, c.SUSPENDED):
            return self
        builder = self._set(c.SUSPENDED, c.FALSE, reasons.RESUMED, f"{self.job.kind} resumed")
        return builder._event("Normal", reasons.RESUMED, f"{self.job.kind} resumed")

    def succeeded(self) -> StatusBuilder:
        text = f"{self._name} successfully completed."
        return self._set_true(c.SUCCEEDED, reasons.SUCCEEDED, text)._ended()

    def failed(self, failure: Failure) -> StatusBuilder:
        return self._set_true(c.FAILED, failure.reason, failure.message, "Warning")._ended()

    @property
    def _name(self) -> str:
        return f"{self.job.kind} {self.job.namespace}/{self.job.name}"

    def _ended(self) -> StatusBuilder:
        builder = self._set_false(c.RUNNING, reasons.RUNNING, f"{self._name} has ended.")
        waited = c.find(builder.status.conditions, c.RUNNING)
        if waited is not None and waited.reason == reasons.WAITING:
            text = f"{self._name} never ran: {waited.message}"
            builder = builder._set(c.RUNNING, c.FALSE, reasons.RUNNING, text)
        builder = builder._set_false(c.RESTARTING, reasons.RESTARTED, f"{self._name} has ended.")
        return replace(builder, status=replace(builder.status, completion_time=self.now))

    def _set_true(
        self, kind: str, reason: str, text: str, weight: Literal["Normal", "Warning"] = "Normal"
    ) -> StatusBuilder:
        builder = self._set(kind, c.TRUE, reason, text)
        return self if builder is self else builder._event(weight, reason, text)

    def _set_false(self, kind: str, reason: str, text: str) -> StatusBuilder:
        """The condition no longer holds; where it never did, it is not mentioned."""
        if not c.holds(self.status.conditions, kind):
            return self
        return self._set(kind, c.FALSE, reason, text)

    def _set(self, kind: str, truth: str, reason: str, text: str) -> StatusBuilder:
        new = c.Condition(type=kind, status=truth, reason=reason, message=text)
        after = c.with_condition(self.status.conditions, new, self.now)
        if after is self.status.conditions:
            return self
        # What holds comes last, because lists of jobs show the last condition as the state.
        after = tuple(sorted(after, key=lambda x: x.status == c.TRUE))
        return replace(self, status=replace(self.status, conditions=after))

    def _event(self, weight: Literal["Normal", "Warning"], reason: str, text: str) -> StatusBuilder:
        return replace(self, events=(*self.events, DecidedEvent(weight, reason, text)))


def ended_at(status: MPIJobStatus) -> datetime | None:
    """The end as written; a job that another controller failed may have a condition and no time."""
    if status.completion_time is not None:
        return status.completion_time
    ends = (x for x in status.conditions if x.type in (c.SUCCEEDED, c.FAILED))
    return next((x.last_transition_time for x in ends if x.status == c.TRUE), None)


def _retry(record: Record, limit: int, how: str) -> str:
    """Empty where the last attempt did not fail, but was broken off."""
    last = record.failures[-1] if record.failures else None
    if last is None or last.attempt != record.attempt - 1:
        return ""
    count = f"retry {len(record.failures)} of {limit} {how}"
    return f"Attempt {last.attempt} failed ({count}): {last.message}"
