"""How urgent a change of an MPIJob's status is. Pure.

- That a job was created, or created suspended, waits for a second: by then it may run, and whoever
  has just created it can change it without a conflict (U-3).
- Counts move with every pod: they wait until some time after the last write, which the status
  itself tells, or are written with the next other change.
- That nothing of a suspended or finished job is active any more is written at once: its quota is
  free (C-10). So is everything else.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.mpijob import MPIJobStatus
from mpi_trainer.controller import status_throttle
from mpi_trainer.controller.status_throttle import AT_ONCE, Urgency

NEW_JOB: Final = Urgency(timedelta(seconds=1), writes=1, longest=timedelta(seconds=10))
COUNTS: Final = Urgency(timedelta(seconds=10), writes=3, longest=timedelta(minutes=1))
_OF_NEW_JOBS: Final = {c.CREATED, c.SUSPENDED}


def wait(
    old: MPIJobStatus, new: MPIJobStatus, first_seen: datetime, now: datetime, busy: timedelta
) -> timedelta | None:
    """How long the new status may wait to be written; None where there is nothing to write."""
    change = urgency(old, new)
    if change is None:
        return None
    since = first_seen if change is NEW_JOB else old.last_reconcile_time or now
    return status_throttle.wait(change, since, now, busy)


def urgency(old: MPIJobStatus, new: MPIJobStatus) -> Urgency | None:
    """None where nothing but the time of the last pass differs."""
    bare = replace(new, last_reconcile_time=old.last_reconcile_time)
    if bare == old:
        return None
    holding = {one.type for one in new.conditions if one.status == c.TRUE}
    if not old.conditions and c.CREATED in holding <= _OF_NEW_JOBS:
        return NEW_JOB
    if replace(bare, replica_statuses=old.replica_statuses) != old:
        return AT_ONCE
    idle = not any(r.active for r in new.replica_statuses.values())
    rests = c.finished(new.conditions) or c.holds(new.conditions, c.SUSPENDED)
    return AT_ONCE if old.last_reconcile_time is None or (idle and rests) else COUNTS
