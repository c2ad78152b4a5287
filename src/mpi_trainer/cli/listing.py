"""All jobs of a namespace, or of all, page by page over one connection."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import Gone
from mpi_trainer.kube.oneshot import OneShot
from mpi_trainer.kube.resources import MPIJOBS
from mpi_trainer.sdk.backends.backend import JobSummary
from mpi_trainer.sdk.backends.cluster import observed

PAGE = 500


class _Meta(msgspec.Struct, frozen=True):
    continue_: str = msgspec.field(default="", name="continue")


class _Listed(msgspec.Struct, frozen=True):
    items: tuple[observed.Listed, ...] | None = None
    metadata: _Meta = _Meta()


def listed(server: OneShot, namespace: str) -> Sequence[JobSummary]:
    """Newest first."""
    found = [observed.summary(job) for job in _pages(server, namespace, PAGE)]
    return sorted(found, key=lambda job: job.created, reverse=True)


def _pages(server: OneShot, namespace: str, limit: int) -> Sequence[observed.Listed]:
    items: tuple[observed.Listed, ...] = ()
    token = ""
    while True:
        request = requests.list_page(MPIJOBS, namespace, limit=limit, continue_=token)
        try:
            page = server.call(request, _Listed)
        except Gone:
            if not token:
                raise
            # The server has forgotten where we were: the whole list, without pages.
            return _pages(server, namespace, 0)
        items += page.items or ()
        token = page.metadata.continue_
        if not token:
            return items
