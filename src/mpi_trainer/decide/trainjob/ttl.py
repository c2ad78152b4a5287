"""When a finished TrainJob itself is removed: the annotation's seconds after its end (AC-4)."""

from __future__ import annotations

from datetime import datetime, timedelta

from mpi_trainer.api.kinds.trainjob import SUSPENDED, TrainJob
from mpi_trainer.decide import deadline
from mpi_trainer.decide.trainjob import status_annotations
from mpi_trainer.decide.trainjob.status_annotations import StatusAnnotations


def remaining(job: TrainJob, annotations: StatusAnnotations, now: datetime) -> timedelta | None:
    """Time until the job is due for removal; zero or less when it is; None when it stays."""
    return deadline.remaining_seconds(_seconds(annotations.ttl), _ended(job, annotations), now)


def _ended(job: TrainJob, annotations: StatusAnnotations) -> datetime | None:
    """The end as written; a job that another controller ended has a condition alone."""
    ends = (c for c in job.status.conditions if c.status == "True" and c.type != SUSPENDED)
    written = status_annotations.to_time(annotations.completion_time)
    return written or next((c.last_transition_time for c in ends), None)


def _seconds(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else None
