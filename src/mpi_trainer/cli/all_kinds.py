"""Training jobs of every kind that a cluster serves, as one list (AC-17).

States are the six words that all kinds share (`sdk.backends.cluster.kinds`).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from mpi_trainer.cli.output import words
from mpi_trainer.sdk.backends.backend import JobSummary
from mpi_trainer.sdk.backends.cluster.kinds import KINDS, Kind

KIND: Final = "KIND"


def kind_of(word: str) -> Kind | None:
    """`trainjob`, `TrainJobs` … as the kind that is meant."""
    plain = word.lower()
    return next((k for k in KINDS if plain in (k.resource.kind.lower(), k.resource.plural)), None)


def full_name(job: JobSummary) -> str:
    """As kubectl takes it."""
    kind = kind_of(job.kind)
    group = "" if kind is None else f".{kind.resource.group}"
    return f"{job.kind.lower()}{group}/{job.key.name}"


def columns(*, wide: bool, everywhere: bool) -> tuple[str, ...]:
    return (KIND, *words.columns(wide=wide, everywhere=everywhere))


def row(job: JobSummary, now: datetime, *, wide: bool, everywhere: bool) -> tuple[str, ...]:
    return (job.kind, *words.row(job, now, wide=wide, everywhere=everywhere))


def data(jobs: Iterable[JobSummary]) -> dict[str, Any]:
    return {"kind": "List", "items": [{"kind": job.kind, **words.data(job)} for job in jobs]}
