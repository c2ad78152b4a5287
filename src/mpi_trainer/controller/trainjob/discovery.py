"""Whether the API server knows TrainJobs and JobSets: both are installed apart from us.

Asked of discovery, which every account may read. Where one is missing MPIJobs are served all the
same; the missing one is asked for again now and then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

import msgspec

from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import KubeError, NotFound, ServerFault
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.resources import JOBSETS, TRAINJOBS, Resource

log = logging.getLogger(__name__)

AGAIN = 30.0
NEEDED = (TRAINJOBS, JOBSETS)


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _Group(msgspec.Struct, frozen=True):
    resources: tuple[_Named, ...] = ()


async def missing(client: Client, asked: Sequence[Resource] = NEEDED) -> tuple[Resource, ...]:
    """Those of `asked`, else of what TrainJobs need, that the server does not have."""
    return tuple([one for one in asked if not await _has(client, one)])


def log_missing(resources: Sequence[Resource]) -> None:
    for one in resources:
        log.warning(
            "TrainJobs are not served: the API server has no %s; install %s and they will be",
            f"{one.plural}.{one.group}",
            "the definitions in manifests/crds" if one is TRAINJOBS else "JobSet",
        )


async def _has(client: Client, resource: Resource) -> bool:
    request = Request("GET", f"/apis/{resource.api_version}", safe=True)
    try:
        found = await client.call(request, _Group)
    except NotFound:
        return False
    return any(one.name == resource.plural for one in found.resources)


async def until_served(client: Client, then: Callable[[], None]) -> None:
    """Calls `then` once nothing is missing any more."""
    while True:
        await asyncio.sleep(AGAIN)
        try:
            if not await missing(client):
                log.info("TrainJobs and JobSets are served now: starting anew to serve them too")
                then()
                return
        except KubeError as error:
            log.info("cannot tell whether TrainJobs are served: %s", error)


async def unserved(client: Client, asked: Sequence[Resource]) -> tuple[Resource, ...]:
    """As `missing`, of what the controller can do without: a server in trouble has none."""
    found: list[Resource] = []
    for one in asked:
        try:
            found += await missing(client, (one,))
        except ServerFault as error:
            log.warning("cannot tell whether %s.%s are served: %s", one.plural, one.group, error)
            found.append(one)
    return tuple(found)


async def until_changed(
    client: Client, then: Callable[[], None], asked: Sequence[Resource], known: Sequence[Resource]
) -> None:
    """Calls `then` once others of `asked` are missing than are `known` to be. What is gone must be
    gone twice in a row: an API server that starts does not know all definitions at once."""
    doubted: frozenset[Resource] = frozenset()
    while True:
        await asyncio.sleep(AGAIN)
        try:
            now = frozenset(await missing(client, asked))
        except KubeError as error:
            log.info("cannot tell whether PodGroups are served: %s", error)
            doubted = frozenset()
            continue
        gone = now - frozenset(known)
        if not frozenset(known) <= now or gone & doubted:
            log.info("other PodGroups are served now: starting anew with those that are there")
            then()
            return
        doubted = gone
