"""Many jobs in one value that reads as a list and shows as a table."""

from __future__ import annotations

from collections.abc import Iterable

from mpi_trainer.sdk.backends.backend import JobSummary


class JobList(tuple[JobSummary, ...]):
    """Jobs, newest first."""

    __slots__ = ()

    def __new__(cls, jobs: Iterable[JobSummary] = ()) -> JobList:
        return super().__new__(cls, jobs)

    @property
    def names(self) -> list[str]:
        return [job.key.name for job in self]

    def __repr__(self) -> str:
        """A line for each, as a terminal shows it."""
        return "\n".join(f"{job.key}: {job.state}" for job in self) or "no jobs"

    def _repr_html_(self) -> str:
        from mpi_trainer.sdk.job.html import jobs_table

        return jobs_table(self)
