"""How urgent a change of a TrainJob's status is, and what of it is written now.

- A new job is not written to for a second, unless it ends: whoever has just created it may change
  it, and a write between the two would refuse that (U-3).
- Clients wait for the first child Job that is active, for the last that no longer is, and for what
  is suspended. Such a change of activity is written at once, or within a second beside many other
  writes, and then alone: one write of counts.
- JobSet changes other counts in bursts: they wait until some time after the last write. That a job
  runs waits beside many other writes.
- Everything else is written at once, and all that waits with it.

Guarantee: nothing waits longer than twenty seconds, and no end of a job waits. A life beside many
others takes three writes to the job; one alone five, of which three are to its status.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from msgspec.structs import replace

from mpi_trainer.api.kinds.trainjob import ReplicatedJobStatus, TrainJob
from mpi_trainer.controller.status_throttle import AT_ONCE, Urgency, wait
from mpi_trainer.decide.trainjob import status_annotations as f
from mpi_trainer.decide.trainjob.decision import TrainJobDecision
from mpi_trainer.decide.trainjob.status import finished

_WRITES: Final = 3
"""that it takes to tell that a job runs: annotations, status, event"""
NEW_JOB: Final = Urgency(timedelta(seconds=1), longest=timedelta(seconds=1))
ACTIVITY: Final = Urgency(writes=_WRITES, longest=timedelta(seconds=1))
RUNS: Final = Urgency(writes=_WRITES, longest=timedelta(seconds=10))
COUNTS: Final = Urgency(timedelta(seconds=2), _WRITES, timedelta(seconds=20))
FIRST_COUNTS: Final = Urgency(timedelta(seconds=10), _WRITES, timedelta(seconds=20))
"""of Jobs none of which is active yet; by then one most often is, and they are written with it"""


class Due(NamedTuple):
    """What of a decision is to be stored now, and how long the rest of it may wait."""

    decision: TrainJobDecision | None
    later: timedelta | None = None


class StatusThrottle:
    """Of one job: when its status was written last, and since when it runs, or its activity has
    changed, without having been written."""

    def __init__(self) -> None:
        self._written: datetime | None = None
        self._runs: datetime | None = None
        self._activity: datetime | None = None

    def written(self, decision: TrainJobDecision, now: datetime) -> None:
        self._written, self._activity = now, None
        if decision.annotations.phase == f.RUNNING:
            self._runs = None

    def due(
        self,
        job: TrainJob,
        decision: TrainJobDecision,
        first_seen: datetime,
        now: datetime,
        busy: timedelta,
    ) -> Due:
        """`busy` is how long recent writes take."""
        if _is_new(job) and _differs(job, decision) and not finished(decision.status):
            left = wait(NEW_JOB, first_seen, now, busy)
            if left:
                return Due(None, left)
        change = urgency(job, decision)
        left = wait(change, self._since(change, now), now, busy)
        if not left:
            return Due(decision)
        if _activity(decision.status.jobs_status) == _activity(job.status.jobs_status):
            return Due(None, left)
        self._activity = self._activity or now
        soon = wait(ACTIVITY, self._activity, now, busy)
        if soon:
            return Due(None, min(soon, left))
        before = f.read(job.metadata.annotations)
        counts = replace(decision, annotations=before, events=())
        return Due(counts, left if change is RUNS else None)

    def _since(self, change: Urgency, now: datetime) -> datetime:
        if change is AT_ONCE:
            return now
        if change is RUNS:
            self._runs = self._runs or now
            return self._runs
        self._written = self._written or now
        return self._written


def urgency(job: TrainJob, decision: TrainJobDecision) -> Urgency:
    """Of everything that the decision changes, in a job that is not new. Pure."""
    before, counts = job.status.jobs_status, decision.status.jobs_status
    if decision.acts or replace(decision.status, jobs_status=before) != job.status:
        return AT_ONCE
    old, new = f.read(job.metadata.annotations), decision.annotations
    if _runs_now(old, new):
        return RUNS
    if new != old or decision.events or counts == before:
        return AT_ONCE
    return COUNTS if before else FIRST_COUNTS


def _is_new(job: TrainJob) -> bool:
    """Whether nothing was ever written to it."""
    stored = f.read(job.metadata.annotations)
    return not (job.status.conditions or job.status.jobs_status or stored.phase or stored.cause)


def _differs(job: TrainJob, decision: TrainJobDecision) -> bool:
    stored = f.read(job.metadata.annotations), job.status
    return (decision.annotations, decision.status) != stored


def _activity(counts: tuple[ReplicatedJobStatus, ...]) -> tuple[bool, bool]:
    """What clients wait for: whether anything is active, and whether anything is suspended."""
    return any(one.active for one in counts), any(one.suspended for one in counts)


def _runs_now(old: f.StatusAnnotations, new: f.StatusAnnotations) -> bool:
    """Whether that it runs is all the difference."""
    before = replace(new, phase=old.phase, start_time=old.start_time, cause=old.cause)
    return new.phase == f.RUNNING and old.phase in ("", f.PENDING) and before == old
