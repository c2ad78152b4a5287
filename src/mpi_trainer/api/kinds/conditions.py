"""Conditions: what has been observed of a job, in the words the public API uses.

Setting a condition follows the rules that clients rely on: the transition time moves only when
the status does, and a job that ended is no longer Running. The last condition is the one that tells
where the job stands: `kubectl get` shows it, and clients of the public operator read it so.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from mpi_trainer.api.kinds.meta import ApiValue

CREATED = "Created"
RUNNING = "Running"
RESTARTING = "Restarting"
SUSPENDED = "Suspended"
SUCCEEDED = "Succeeded"
FAILED = "Failed"

STATES = (CREATED, RUNNING, RESTARTING, SUSPENDED, SUCCEEDED, FAILED)
TRUE = "True"
FALSE = "False"


class Condition(ApiValue, frozen=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_update_time: datetime | None = None
    last_transition_time: datetime | None = None


Conditions = tuple[Condition, ...]


def find(conditions: Conditions, kind: str) -> Condition | None:
    for one in conditions:  # not `next`, which takes thrice as long: lists hold thousands of jobs
        if one.type == kind:
            return one
    return None


def holds(conditions: Conditions, kind: str) -> bool:
    found = find(conditions, kind)
    return found is not None and found.status == TRUE


def with_condition(conditions: Conditions, new: Condition, now: datetime) -> Conditions:
    """`conditions` with `new` in place; the same tuple where nothing a client can see changed."""
    old = find(conditions, new.type)
    if old is not None and (old.status, old.reason, old.message) == (
        new.status,
        new.reason,
        new.message,
    ):
        return conditions
    kept = old is not None and old.status == new.status
    transition = old.last_transition_time if old is not None and kept else now
    stamped = msgspec.structs.replace(new, last_update_time=now, last_transition_time=transition)
    return _standing_last((*(c for c in conditions if c.type != new.type), stamped))


def _standing_last(conditions: Conditions) -> Conditions:
    standing = state(conditions)
    last = tuple(c for c in conditions if c.type == standing)
    return (*(c for c in conditions if c.type != standing), *last)


def finished(conditions: Conditions) -> bool:
    return holds(conditions, SUCCEEDED) or holds(conditions, FAILED)


def state(conditions: Conditions) -> str:
    """The one word for where the job stands: the last of the six that holds, ends first."""
    for kind in (FAILED, SUCCEEDED, SUSPENDED, RESTARTING, RUNNING):
        if holds(conditions, kind):
            return kind
    return CREATED
