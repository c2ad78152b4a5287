"""A job by its name alone, whatever its kind, and jobs of all kinds as a list (AC-17).

MPIJobs come first: for them nothing else is asked. A kind that this cluster does not serve, or
that the caller may not see, is passed over as long as another one answers; so a missing right on
one kind never hides jobs of the others. A backend of one kind alone sees no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import compress
from typing import Any, Final

import msgspec

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.decide.mpijob import backoff
from mpi_trainer.kube import lists, requests
from mpi_trainer.kube.errors import ApiError, Forbidden, Gone, NotFound
from mpi_trainer.kube.requests import Request
from mpi_trainer.sdk.backends.backend import (
    ALL_JOBS,
    JobPage,
    JobQuery,
    JobSummary,
    JobView,
    Key,
)
from mpi_trainer.sdk.backends.cluster import observed
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.kinds import MPIJOB, Kind
from mpi_trainer.sdk.errors import JobError

_PASSED_OVER: Final = (NotFound, Forbidden)


class FoundJob(msgspec.Struct, frozen=True):
    """A job as it is stored."""

    kind: Kind
    data: dict[str, Any]

    @property
    def view(self) -> JobView:
        return self.kind.view(self.data)

    @property
    def most_attempts(self) -> int:
        """0 where its kind does not say it."""
        return backoff.limit(decode(MPIJob, self.data).value) + 1 if self.kind is MPIJOB else 0

    @property
    def uid(self) -> str:
        return str(self.data["metadata"]["uid"])

    @property
    def finished(self) -> bool:
        return self.view.finished


async def find(server: ApiServer, key: Key) -> FoundJob:
    """The first job of that name; the answer about the first kind where there is none."""
    known = server.kinds.get(key, server.served[0])
    answers: list[ApiError] = []
    for kind in (known, *(kind for kind in server.served if kind is not known)):
        try:
            found = await _get(server, key, kind)
        except _PASSED_OVER as error:
            answers.append(error)
            continue
        server.kinds[key] = kind
        return found
    server.kinds.pop(key, None)
    raise answers[0]


async def _get(server: ApiServer, key: Key, kind: Kind) -> FoundJob:
    return FoundJob(kind, await server.call(requests.get(kind.resource, key.namespace, key.name)))


async def summaries(
    server: ApiServer, namespace: str, query: JobQuery = ALL_JOBS
) -> list[JobSummary]:
    """Newest first; the answer about the first kind where nothing can be listed."""
    parts = await _parts(server, namespace, query)
    found = _jobs(parts)
    if not found and isinstance(parts[0], ApiError):
        raise parts[0]
    return found


async def readable(
    server: ApiServer, namespace: str, query: JobQuery = ALL_JOBS
) -> tuple[list[JobSummary], tuple[str, ...]]:
    """Newest first, and the kinds that may not be listed; not found where none is served."""
    parts = await _parts(server, namespace, query)
    absent = [part for part in parts if isinstance(part, NotFound)]
    if len(absent) == len(parts):
        raise absent[0]
    forbidden = list(compress(server.served, (isinstance(part, Forbidden) for part in parts)))
    served = await asyncio.gather(*(_served(server, kind) for kind in forbidden))
    return _jobs(parts), tuple(kind.resource.plural for kind in compress(forbidden, served))


async def _served(server: ApiServer, kind: Kind) -> bool:
    """Whether this cluster has the kind: rights are looked at first, so a list does not tell."""
    try:
        found = await server.call(Request("GET", f"/apis/{kind.resource.api_version}"))
    except NotFound:
        return False
    return any(each.get("name") == kind.resource.plural for each in found.get("resources") or ())


async def _parts(
    server: ApiServer, namespace: str, query: JobQuery
) -> list[list[JobSummary] | ApiError]:
    """The jobs of each kind, or why there are none to be had."""

    async def part(kind: Kind) -> list[JobSummary] | ApiError:
        try:
            return await _list(server, kind, namespace, query)
        except _PASSED_OVER as error:
            return error

    return await asyncio.gather(*map(part, server.served))


def _jobs(parts: Sequence[list[JobSummary] | ApiError]) -> list[JobSummary]:
    found = [job for part in parts if isinstance(part, list) for job in part]
    return sorted(found, key=lambda job: job.created, reverse=True)


async def page(server: ApiServer, namespace: str, limit: int, token: str) -> JobPage:
    """Jobs of one kind; the token says which kind, and where the server goes on."""
    name, _, continued = token.partition(":")
    first = next((n for n, kind in enumerate(server.served) if kind.resource.plural == name), 0)
    answers: list[ApiError] = []
    for n, kind in enumerate(server.served[first:], first + 1):
        try:
            found = await _page(server, kind, namespace, limit, continued)
        except _PASSED_OVER as error:
            answers.append(error)
            continued = ""
            continue
        if found.token:
            following = f"{kind.resource.plural}:{found.token}"
        else:
            following = f"{server.served[n].resource.plural}:" if n < len(server.served) else ""
        return msgspec.structs.replace(found, token=following)
    if answers and not token:
        raise answers[0]
    return JobPage(())


async def _page(server: ApiServer, kind: Kind, namespace: str, limit: int, token: str) -> JobPage:
    request = requests.list_page(kind.resource, namespace, limit=limit, continue_=token)
    try:
        found: dict[str, Any] = await server.call(request)
    except Gone as error:
        raise JobError(
            "the list has changed since its last page", "Start again at the first page."
        ) from error
    jobs = tuple(observed.view_summary(kind.view(item)) for item in found.get("items") or ())
    return JobPage(jobs, str(found["metadata"].get("continue") or ""))


async def _list(server: ApiServer, kind: Kind, namespace: str, query: JobQuery) -> list[JobSummary]:
    async def once(shape: Any) -> lists.Page[Any]:
        return await lists.list_all(
            server.client, kind.resource, shape, namespace=namespace, labels=query.labels
        )

    if kind is MPIJOB and not query.manifests:
        page = await server.outages.retried(lambda: once(observed.Listed), again=True)
        return [observed.summary(job) for job in page.items]
    whole = await server.outages.retried(lambda: once(dict[str, Any]), again=True)
    views = [kind.view(item) for item in whole.items]
    jobs = [observed.view_summary(view) for view in views]
    if not query.manifests:
        return jobs
    pairs = zip(jobs, views, strict=True)
    return [msgspec.structs.replace(job, manifest=view.manifest) for job, view in pairs]
