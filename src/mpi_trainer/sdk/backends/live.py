"""What a backend tells of jobs while somebody looks: all of them at first, then every change."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Protocol

import msgspec

from mpi_trainer.sdk.backends.backend import JobSummary

if TYPE_CHECKING:
    from mpi_trainer.sdk.backends.backend import JobDetails, Key


class JobsNow(msgspec.Struct, frozen=True):
    """All jobs as they were at `version`: at first, and whenever changes may have been missed."""

    jobs: tuple[JobSummary, ...]
    version: str


class LiveChange(msgspec.Struct, frozen=True):
    """A job as it is now, or as it was last where it is `deleted`."""

    job: JobSummary
    deleted: bool = False


class Reached(msgspec.Struct, frozen=True):
    """Nothing has happened up to this version."""

    version: str


class Away(msgspec.Struct, frozen=True):
    """The server cannot be asked for now: changes are told later."""


LiveNews = JobsNow | LiveChange | Reached | Away


class LiveView(Protocol):
    """What a backend tells while somebody looks, and whether they may."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of jobs that there may be."""

    @property
    def prompt(self) -> bool:
        """Whether `jobs` tells a change as it happens."""

    def jobs(
        self, kind: str, namespace: str = "", since: str = ""
    ) -> AsyncGenerator[LiveNews, None]:
        """Every job of one kind now, then every change, from the version `since` on where it is
        given; never ends by itself. A refusal, also that there is no such kind, is raised."""

    def details(self, key: Key) -> AsyncGenerator[JobDetails, None]:
        """The job with all that is known of it, now and again; ends when it is gone."""

    async def may_watch(self, kind: str, namespace: str = "") -> bool:
        """Whether the caller may list and watch jobs of this kind at this moment."""

    async def may_list(self, kind: str, namespace: str = "") -> bool:
        """Whether the caller may list them."""

    async def may_read_logs(self, namespace: str) -> bool:
        """Whether the caller may read what pods of this namespace write, at this moment."""
