"""A job by its name alone, whatever its kind, and all jobs of all kinds as one list (AC-17).

MPIJobs come first: for them nothing else is asked. A kind that this cluster does not serve, or
that the caller may not see, is passed over as long as another one answers; so a missing right on
one kind never hides jobs of the others. A home that serves one kind alone sees no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.kube import lists, requests
from mpi_trainer.kube.errors import ApiError, Forbidden, NotFound
from mpi_trainer.sdk.backends.backend import JobSummary, Key
from mpi_trainer.sdk.backends.cluster import observed
from mpi_trainer.sdk.backends.cluster.connections import Home
from mpi_trainer.sdk.backends.cluster.kinds import MPIJOB, Kind

_PASSED_OVER: Final = (NotFound, Forbidden)


class FoundJob(msgspec.Struct, frozen=True):
    """A job as it is stored, and as what it stands for."""

    kind: Kind
    data: dict[str, Any]

    @property
    def job(self) -> MPIJob:
        return self.kind.job(self.data)

    @property
    def uid(self) -> str:
        return str(self.data["metadata"]["uid"])

    @property
    def finished(self) -> bool:
        return c.finished(self.job.status.conditions)


async def find(home: Home, key: Key) -> FoundJob:
    """The first job of that name; the answer about the first kind where there is none."""
    known = home.kinds.get(key, home.served[0])
    answers: list[ApiError] = []
    for kind in (known, *(kind for kind in home.served if kind is not known)):
        try:
            found = await _get(home, key, kind)
        except _PASSED_OVER as error:
            answers.append(error)
            continue
        home.kinds[key] = kind
        return found
    home.kinds.pop(key, None)
    raise answers[0]


async def _get(home: Home, key: Key, kind: Kind) -> FoundJob:
    return FoundJob(kind, await home.call(requests.get(kind.resource, key.namespace, key.name)))


async def summaries(home: Home, namespace: str) -> list[JobSummary]:
    """Newest first."""
    parts = await asyncio.gather(
        *(_list(home, kind, namespace) for kind in home.served), return_exceptions=True
    )
    found = [job for part in parts if isinstance(part, list) for job in part]
    failed = [part for part in parts if isinstance(part, BaseException)]
    for error in failed:
        if not isinstance(error, _PASSED_OVER):
            raise error
    if failed and not found and isinstance(parts[0], BaseException):
        raise parts[0]
    return sorted(found, key=lambda job: job.created, reverse=True)


async def _list(home: Home, kind: Kind, namespace: str) -> list[JobSummary]:
    async def once(shape: Any) -> lists.Page[Any]:
        return await lists.list_all(home.client, kind.resource, shape, namespace=namespace)

    if kind is MPIJOB:
        page = await home.outages.through(lambda: once(observed.Listed), again=True)
        return [observed.summary(job) for job in page.items]
    whole = await home.outages.through(lambda: once(dict[str, Any]), again=True)
    items: Sequence[dict[str, Any]] = whole.items
    typed = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind}
    return [observed.summary_of(kind.job({**typed, **item})) for item in items]
