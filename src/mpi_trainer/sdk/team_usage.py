"""Who used how much: jobs, hours and GPU hours by namespace, queue and user (OBS-5). Pure.

A job counts from its start to its end, as its status says, and only within the window; what runs
now counts until now. Danger: jobs that were deleted are not in it, nor their hours; and whose job
it is says an annotation, which whoever may write the job may write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from mpi_trainer.api.kinds import conditions
from mpi_trainer.sdk.backends.backend import JobSummary

NAMESPACE, QUEUE, USER = "namespace", "queue", "user"
GROUPS: Final = (NAMESPACE, QUEUE, USER)
MOST_ROWS: Final = 10_000
OTHERS: Final = "(others)"
"""what is added up together where there are more groups than that"""
LONGEST: Final = 253
"""characters of a name; a queue is a label, a user may be anything"""


class Window(msgspec.Struct, frozen=True):
    start: datetime
    end: datetime

    def hours(self, job: JobSummary) -> float:
        if job.started is None:
            return 0.0
        began, ended = max(job.started, self.start), min(job.completed or self.end, self.end)
        return max((ended - began).total_seconds(), 0.0) / 3600


class Row(msgspec.Struct, frozen=True):
    """One group; a field that was not asked for is empty."""

    namespace: str = ""
    queue: str = ""
    user: str = ""
    jobs: int = 0
    succeeded: int = 0
    failed: int = 0
    hours: float = 0.0
    gpu_hours: float = 0.0


class Report:
    """Adds jobs up as they come, so that no more than one page of them is held."""

    def __init__(self, window: Window, by: Sequence[str] = GROUPS) -> None:
        self.window = window
        self.by = tuple(by)
        self.jobs = 0
        self._rows: dict[tuple[str, ...], Row] = {}

    def add(self, jobs: Iterable[JobSummary]) -> None:
        for job in jobs:
            self.jobs += 1
            hours = self.window.hours(job)
            if hours or self._began_within(job):
                self._count(job, hours)

    def rows(self) -> list[Row]:
        """The largest use first."""
        return sorted(
            self._rows.values(),
            key=lambda row: (-row.gpu_hours, -row.hours, row.namespace, row.queue, row.user),
        )

    def _began_within(self, job: JobSummary) -> bool:
        """One that has used nothing yet, or less than can be told."""
        return self.window.start <= (job.started or job.created) <= self.window.end

    def _count(self, job: JobSummary, hours: float) -> None:
        all_of_it = {NAMESPACE: job.key.namespace, QUEUE: job.queue, USER: job.owner}
        names = {name: (all_of_it[name] or "-")[:LONGEST] for name in self.by}
        key = tuple(names.values())
        if key not in self._rows and len(self._rows) >= MOST_ROWS:
            names = dict.fromkeys(names, OTHERS)
            key = tuple(names.values())
        old = self._rows.get(key) or msgspec.convert(names, Row)
        self._rows[key] = msgspec.structs.replace(
            old,
            jobs=old.jobs + 1,
            succeeded=old.succeeded + (job.state == conditions.SUCCEEDED),
            failed=old.failed + (job.state == conditions.FAILED),
            hours=old.hours + hours,
            gpu_hours=old.gpu_hours + hours * job.gpus,
        )
