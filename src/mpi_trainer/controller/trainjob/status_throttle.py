"""What is new of a job: told in time, but not word by word.

- A job that is new is not written to for a second, unless it ends: whoever has just created it may
  change it, which a write between the two would refuse.
- Clients wait for the first child Job that is active and for the last that no longer is, and for
  what is suspended. Such a turn is told at once, or within a second where the controller has many
  other writes to send, and by itself: one write of counts.
- JobSet changes other counts in bursts: they wait until the last write was a moment ago. That a job
  runs waits as well beside many other writes, which it would only delay.
- Whatever else changes takes all of it along.

Guarantee: nothing waits longer than twenty seconds, and no end of a job waits. A life beside many
others takes three writes to the job; one alone five, of which three are to its status.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from mpi_trainer.api.kinds.trainjob import JobStatus, TrainJob
from mpi_trainer.decide.trainjob import status_annotations as f
from mpi_trainer.decide.trainjob.decision import TrainJobDecision
from mpi_trainer.decide.trainjob.observed import ObservedJobSet
from mpi_trainer.decide.trainjob.status import finished

NEW = timedelta(seconds=1)
TURNS_WITHIN = timedelta(seconds=1)
COUNTS_EVERY = timedelta(seconds=2)
FIRST_COUNTS = timedelta(seconds=10)
"""of Jobs none of which is active yet; by then one most often is, which takes them along"""
COUNTS_WITHIN = timedelta(seconds=20)
RUNS_WITHIN = timedelta(seconds=10)
WRITES = 3
"""that it takes to tell that a job runs: annotations, status, event"""


class Due(NamedTuple):
    """What of a step is to be stored now, and how long the rest of it may wait."""

    step: TrainJobDecision | None
    later: timedelta | None = None


class StatusThrottle:
    """Of one job: when it was first seen and when last told of, since when it runs or has turned
    untold, and its JobSet."""

    def __init__(self) -> None:
        self._seen: datetime | None = None
        self._told: datetime | None = None
        self._runs: datetime | None = None
        self._turned: datetime | None = None
        self._set: ObservedJobSet | None = None

    def dated(self, job_set: ObservedJobSet | None, now: datetime) -> ObservedJobSet | None:
        """The JobSet, with the time since when it was seen to be as it is."""
        self._seen = self._seen or now
        if job_set is None:
            return None
        if self._set is None or replace(self._set, since=None) != job_set:
            self._set = replace(job_set, since=now)
        return self._set

    def told(self, step: TrainJobDecision, now: datetime) -> None:
        self._told, self._turned = now, None
        if step.annotations.phase == f.RUNNING:
            self._runs = None

    def due(self, job: TrainJob, step: TrainJobDecision, now: datetime, busy: timedelta) -> Due:
        """`busy` is how long the writes of late take."""
        old, new = f.read(job.metadata.annotations), step.annotations
        before, counts = job.status.jobs_status, step.status.jobs_status
        if (new, step.status) != (old, job.status) and not finished(step.status):
            left = _rest(self._seen or now, now, NEW) if _is_new(job, old) else None
            if left is not None:
                return Due(None, left)
        if step.acts or replace(step.status, jobs_status=before) != job.status:
            return Due(step)
        runs = _runs_now(old, new)
        if not runs and (new != old or step.events or counts == before):
            return Due(step)
        rest = self._untold(runs, before, now, busy)
        if rest is None or _turn(counts) == _turn(before):
            return Due(step) if rest is None else Due(None, rest)
        self._turned = self._turned or now
        soon = _rest(self._turned, now, min(WRITES * busy, TURNS_WITHIN))
        if soon is not None:
            return Due(None, min(soon, rest))
        return Due(replace(step, annotations=old, events=()), rest if runs else None)

    def _untold(
        self, runs: bool, before: tuple[JobStatus, ...], now: datetime, busy: timedelta
    ) -> timedelta | None:
        """How long the whole of it may wait."""
        if runs:
            self._runs = self._runs or now
            return _rest(self._runs, now, min(WRITES * busy, RUNS_WITHIN))
        self._told = self._told or now
        pause = COUNTS_EVERY if before else FIRST_COUNTS
        return _rest(self._told, now, min(pause + WRITES * busy, COUNTS_WITHIN))


def _is_new(job: TrainJob, told: f.StatusAnnotations) -> bool:
    """Whether nothing was ever written to it."""
    return not (job.status.conditions or job.status.jobs_status or told.phase or told.cause)


def _turn(counts: tuple[JobStatus, ...]) -> tuple[bool, bool]:
    """What clients wait for: whether anything is active, and whether anything is suspended."""
    return any(one.active for one in counts), any(one.suspended for one in counts)


def _runs_now(old: f.StatusAnnotations, new: f.StatusAnnotations) -> bool:
    """Whether that is all the difference."""
    before = replace(new, phase=old.phase, start_time=old.start_time, cause=old.cause)
    return new.phase == f.RUNNING and old.phase in ("", f.PENDING) and before == old


def _rest(since: datetime, now: datetime, patience: timedelta) -> timedelta | None:
    """What is left to wait; a clock that was set back must not add to it."""
    left = patience - (now - since)
    return left if timedelta() < left <= patience else None
