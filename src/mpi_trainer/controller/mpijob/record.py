"""The job's durable memory as an annotation.

It is absent while it says nothing, so a job that goes well costs no write. Danger: it is the only
thing that keeps a crash from starting an attempt twice; one that cannot be read is never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds.annotations import ATTEMPTS, RECORD
from mpi_trainer.api.yaml import typed
from mpi_trainer.decide import history
from mpi_trainer.decide.history import History
from mpi_trainer.decide.observed import Record


class UnreadableRecord(Exception):
    """The annotation is not what this controller wrote."""


def read(annotations: Mapping[str, str]) -> Record:
    text = annotations.get(RECORD)
    if not text:
        return Record()
    try:
        if len(text) > bounds.RECORD:
            raise ValueError(f"more than {bounds.RECORD} characters")
        found = typed.decode(text, Record)
        return found if found.retry_at is None else _in_utc(found, found.retry_at)
    except (ValueError, OverflowError) as error:
        raise UnreadableRecord(
            f"metadata.annotations[{RECORD}]: cannot be read ({error}); remove the "
            "annotation to begin anew, or delete the job"
        ) from None


def _in_utc(record: Record, moment: datetime) -> Record:
    """Times can be compared with ours: one at the edge of the calendar overflows."""
    return msgspec.structs.replace(record, retry_at=moment.astimezone(UTC))


def patch(
    record: Record, resource_version: str, attempts: History | None = None
) -> dict[str, object]:
    """A merge patch that stores it, if the job is still the one that was looked at; with it, where
    they are given, what became of earlier attempts."""
    text = None if record == Record() else msgspec.json.encode(record).decode()
    annotations = {RECORD: text}
    if attempts is not None:
        annotations[ATTEMPTS] = history.to_json(attempts)
    return {"metadata": {"resourceVersion": resource_version, "annotations": annotations}}
