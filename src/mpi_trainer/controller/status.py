"""A job's status on the wire, and whether a new one is worth a write.

What a person waits for (a condition, a time) is written at once. That a job was created is news
for moments only, and rides along if it runs by then: within a second, or a few where the controller
has hundreds of pods to make, which it would only delay. Mere counts move with every pod, so they
wait until ten seconds after the last write, or longer where there is much else to write, or ride
along with news: a simple job's life takes four writes however many pods it has. That nothing of a
suspended job is active any more is news: its quota is free. That a new job is suspended is none,
and waits as well, so that whoever has created it can change it without a conflict (U-3). The last
write's time is in the status itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.meta import ApiValue
from mpi_trainer.api.kinds.mpijob import JobStatus
from mpi_trainer.api.yaml import typed
from mpi_trainer.api.yaml.decode import decode

replace = msgspec.structs.replace
T = TypeVar("T", bound=ApiValue)

CREATED_WITHIN = timedelta(seconds=1)
CREATED_AT_THE_LATEST = timedelta(seconds=10)
WRITES_IN_A_SECOND = 32
COUNTS_EVERY = timedelta(seconds=10)
COUNTS_AT_THE_LATEST = timedelta(minutes=1)
NOW = timedelta(0)
_NO_NEWS = {c.CREATED, c.SUSPENDED}


def read(raw: bytes | msgspec.Raw, kind: type[T]) -> T:
    """The stored status; what another controller wrote strangely is read as far as it can be."""
    try:
        return typed.decode(raw, kind)
    except msgspec.ValidationError:
        data = msgspec.json.decode(raw)
        return decode(kind, data if isinstance(data, dict) else {}).value


def busy(writes: float) -> timedelta:
    """How long so many writes of late take the API server, about."""
    return timedelta(seconds=writes / WRITES_IN_A_SECOND)


class Leisure(msgspec.Struct, frozen=True):
    """What may wait, and for how long: when it is to be written that the job was created, should it
    not run by then, and how long counts wait after the last write."""

    created_by: datetime
    counts: timedelta = COUNTS_EVERY

    @classmethod
    def beside(cls, writes: float, first_seen: datetime) -> Leisure:
        """With so many other writes of late."""
        return cls(
            first_seen + min(CREATED_WITHIN + busy(writes), CREATED_AT_THE_LATEST),
            min(COUNTS_EVERY + busy(writes), COUNTS_AT_THE_LATEST),
        )


def wait(old: JobStatus, new: JobStatus, now: datetime, leisure: Leisure) -> timedelta | None:
    """How long the new status may wait to be written; None where there is nothing to write."""
    bare = replace(new, last_reconcile_time=old.last_reconcile_time)
    if bare == old:
        return None
    holding = {one.type for one in new.conditions if one.status == c.TRUE}
    if not old.conditions and c.CREATED in holding <= _NO_NEWS:
        return max(leisure.created_by - now, NOW)
    if replace(bare, replica_statuses=old.replica_statuses) != old:
        return NOW
    idle = not any(r.active for r in new.replica_statuses.values())
    rests = c.finished(new.conditions) or c.holds(new.conditions, c.SUSPENDED)
    if old.last_reconcile_time is None or (idle and rests):
        return NOW
    passed = now - old.last_reconcile_time
    # A clock that was set back must not add to it.
    return max(leisure.counts - passed, NOW) if passed >= NOW else NOW


def patch(old: ApiValue, new: ApiValue, resource_version: str) -> dict[str, object]:
    """A merge patch from the status that was looked at to the new one, and to no other."""
    changes = _difference(wire(old), wire(new))
    return {"metadata": {"resourceVersion": resource_version}, "status": changes}


def wire(status: ApiValue) -> dict[str, Any]:
    """As Kubernetes writes it: times in whole seconds, nothing that is not set."""
    fields: dict[str, Any] = msgspec.to_builtins(status, builtin_types=(datetime,))
    plain: dict[str, Any] = _in_seconds(fields)
    return plain


def _in_seconds(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, dict):
        return {key: _in_seconds(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_in_seconds(item) for item in value]
    return value


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = _difference(before, value)
            if inner:
                changes[key] = inner
        elif value != before or key not in old:
            changes[key] = value
    return changes
