"""What we know of a TrainJob and its public status has no place for, as annotations of the job.

The status is upstream's field by field, because Kueue and the Kubeflow SDK read it. Phase, times,
cause and placement stand beside it, in text that people can read. Absent means not known yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from mpi_trainer.api.kinds.annotations import (
    ATTEMPTS,
    CAUSE,
    CLEAN,
    COMPLETION_TIME,
    PHASE,
    PLACEMENT,
    START_TIME,
    TTL,
)
from mpi_trainer.layout.agent.summary import Summary

PENDING = "Pending"
RUNNING = "Running"
SUSPENDED = "Suspended"
SUCCEEDED = "Succeeded"
FAILED = "Failed"

_NAMES = {
    "phase": PHASE,
    "start_time": START_TIME,
    "completion_time": COMPLETION_TIME,
    "cause": CAUSE,
    "placement": PLACEMENT,
    "ttl": TTL,
    "clean": CLEAN,
    "attempts": ATTEMPTS,
}

_YEARS = range(1970, 9999)


class StatusAnnotations(msgspec.Struct, frozen=True):
    """`ttl` and `clean` are what the job asks for, or its runtime once the job has ended: it is
    then all that is left to read. `attempts` is what `history` writes."""

    phase: str = ""
    start_time: str = ""
    completion_time: str = ""
    cause: str = ""
    placement: str = ""
    ttl: str = ""
    clean: str = ""
    attempts: str = ""


def read(annotations: Mapping[str, str]) -> StatusAnnotations:
    return StatusAnnotations(**{field: annotations.get(name, "") for field, name in _NAMES.items()})


def changes(old: StatusAnnotations, new: StatusAnnotations) -> dict[str, str | None]:
    """A merge patch of the annotations that differ."""
    before, after = msgspec.structs.asdict(old), msgspec.structs.asdict(new)
    return {
        name: after[field] or None
        for field, name in _NAMES.items()
        if before[field] != after[field]
    }


def to_text(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def to_time(text: str) -> datetime | None:
    """None of what anybody may have written instead: without a zone it compares with no other time,
    and at the ends of the calendar nothing can be added to it or taken away."""
    try:
        found = msgspec.convert(text, datetime) if text else None
    except msgspec.ValidationError:
        return None
    sound = found is not None and found.tzinfo is not None and found.year in _YEARS
    return found if sound else None


def to_seconds(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else None


def placement(summary: Summary) -> str:
    """Empty where the agent saw no rank."""
    there = {host.pod: str(host.ranks) for host in summary.hosts}
    return msgspec.json.encode(there).decode() if there else ""
