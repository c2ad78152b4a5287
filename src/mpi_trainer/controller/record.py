"""The job's durable memory as an annotation.

It is absent while it says nothing, so a job that goes well costs no write. Danger: it is the only
thing that keeps a crash from starting an attempt twice; one that cannot be read is never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mpi_trainer.api import typed
from mpi_trainer.controller import marks
from mpi_trainer.decide import Record


class Unreadable(Exception):
    """The annotation is not what this controller wrote."""


def read(annotations: Mapping[str, str]) -> Record:
    text = annotations.get(marks.RECORD)
    if not text:
        return Record()
    try:
        return typed.decode(text, Record)
    except msgspec.MsgspecError as error:
        raise Unreadable(
            f"metadata.annotations[{marks.RECORD}]: cannot be read ({error}); remove the "
            "annotation to begin anew, or delete the job"
        ) from None


def patch(record: Record, resource_version: str) -> dict[str, object]:
    """A merge patch that stores it, if the job is still the one that was looked at."""
    text = None if record == Record() else msgspec.json.encode(record).decode()
    annotations = {marks.RECORD: text}
    return {"metadata": {"resourceVersion": resource_version, "annotations": annotations}}
