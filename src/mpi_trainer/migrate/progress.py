"""How far a cluster is on its way to one API: jobs by API, and what each would take (MIG-4). Pure.

A job that has ended needs nothing: its description does, wherever that is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from mpi_trainer.api.errors import line
from mpi_trainer.migrate.report import CHANGED, LOST
from mpi_trainer.migrate.sources import TRAINJOB, converted


class JobProgress(msgspec.Struct, frozen=True):
    """`effort` is none, some or blocked; `reasons` why it is not none."""

    namespace: str
    name: str
    api: str
    kind: str
    ended: bool = False
    effort: str = "none"
    reasons: tuple[str, ...] = ()


class Progress(msgspec.Struct, frozen=True):
    jobs: tuple[JobProgress, ...]

    @property
    def by_api(self) -> dict[str, int]:
        return dict(sorted(Counter(f"{job.kind} {job.api}" for job in self.jobs).items()))

    @property
    def by_effort(self) -> dict[str, int]:
        """Of jobs that are no TrainJobs yet."""
        left = (job.effort for job in self.jobs if job.kind == "MPIJob")
        return dict(sorted(Counter(left).items()))

    @property
    def by_reason(self) -> dict[str, int]:
        """The most frequent first."""
        return dict(Counter(one for job in self.jobs for one in job.reasons).most_common())


def progress(objects: Iterable[tuple[Mapping[str, Any], bool]]) -> Progress:
    """Of objects as an API server has them, and whether each has ended."""
    return Progress(tuple(_job(data, ended) for data, ended in objects))


def _job(data: Mapping[str, Any], ended: bool) -> JobProgress:
    meta = data.get("metadata") or {}
    made = converted(data, TRAINJOB)
    about = JobProgress(
        str(meta.get("namespace") or ""),
        str(meta.get("name") or ""),
        str(data.get("apiVersion") or ""),
        str(data.get("kind") or ""),
        ended,
    )
    if made is None:
        return about
    if made.errors:
        reasons = tuple(line(error) for error in made.errors)
    else:
        left = (one for one in made.fields if one.fate in (CHANGED, LOST) and one.remedy)
        reasons = tuple(dict.fromkeys(f"{one.field}: {one.remedy}" for one in left))
    return msgspec.structs.replace(about, effort=made.effort, reasons=reasons)
