"""All jobs of one kind and every change of them, from a version on: for many who look at once.

Guarantee: nothing is left out. A watch that breaks goes on where it was; where the server has
forgotten that, all jobs are told again. Refusals (401, 403, no such kind) end it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from mpi_trainer.kube import lists, requests
from mpi_trainer.kube.errors import Gone, KubeError
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.resources import SELF_SUBJECT_ACCESS_REVIEWS as REVIEWS
from mpi_trainer.kube.resources import Resource
from mpi_trainer.kube.watch import Bookmark, Deleted, Unreadable, watch
from mpi_trainer.sdk.backends.backend import JobSummary
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.kinds import MPIJOB, Kind
from mpi_trainer.sdk.backends.cluster.observed import Listed, summary, view_summary
from mpi_trainer.sdk.backends.live import Away, JobsNow, LiveChange, LiveNews, Reached

SECONDS: Final = 600


async def follow(
    server: ApiServer, kind: Kind, namespace: str, since: str = ""
) -> AsyncGenerator[LiveNews, None]:
    """From the version `since` on, without the jobs at first, where it is given."""
    shape: Any = Listed if kind is MPIJOB else dict[str, Any]
    version, tried = since, 0
    while True:
        try:
            if not version:
                page = await lists.list_all(
                    server.client, kind.resource, shape, namespace=namespace
                )
                version, tried = page.resource_version, 0
                server.outages.note_answer()
                yield JobsNow(tuple(_read(kind, item) for item in page.items), version)
            async with aclosing(
                watch(server.streams, _request(kind, namespace, version), shape)
            ) as events:
                async for event in events:
                    tried = 0
                    server.outages.note_answer()
                    if isinstance(event, Bookmark):
                        version = event.resource_version
                        yield Reached(version)
                    elif isinstance(event, Unreadable):
                        version = event.metadata.resource_version
                        yield Reached(version)
                    else:
                        job = _read(kind, event.object)
                        version = job.resource_version
                        yield LiveChange(job, isinstance(event, Deleted))
        except Gone:
            version = ""
        except KubeError as error:
            yield Away()
            await server.outages.wait_for_server(error, tried)
            tried += 1


async def allowed(
    server: ApiServer, resource: Resource, verb: str, namespace: str, sub: str = ""
) -> bool:
    """Whether the caller may do that, as the API server says at this moment."""
    wanted = {
        "group": resource.group,
        "resource": resource.plural,
        "subresource": sub,
        "verb": verb,
        "namespace": namespace,
    }
    body = {
        "apiVersion": REVIEWS.api_version,
        "kind": REVIEWS.kind,
        "spec": {"resourceAttributes": {k: v for k, v in wanted.items() if v}},
    }
    found = await server.call(requests.create(REVIEWS, "", body))
    return bool((found.get("status") or {}).get("allowed"))


def _request(kind: Kind, namespace: str, version: str) -> Request:
    return requests.watch(kind.resource, namespace, resource_version=version, seconds=SECONDS)


def _read(kind: Kind, item: Any) -> JobSummary:
    return summary(item) if isinstance(item, Listed) else view_summary(kind.view(item))
