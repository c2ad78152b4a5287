"""Training jobs of every kind that a cluster serves, as one list (AC-17).

A kind that the cluster does not have, or that the caller may not list, is no error where others
can be listed. States are the six words that all kinds share (`sdk.backends.cluster.kinds`).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import msgspec

from mpi_trainer.cli.output import words
from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import Forbidden, NotFound
from mpi_trainer.kube.oneshot import OneShot
from mpi_trainer.sdk.backends.backend import JobSummary
from mpi_trainer.sdk.backends.cluster.kinds import KINDS, Kind
from mpi_trainer.sdk.backends.views import summary

KIND: Final = "KIND"


class _List(msgspec.Struct, frozen=True):
    items: tuple[dict[str, Any], ...] | None = None


def kind_of(word: str) -> Kind | None:
    """`trainjob`, `TrainJobs` … as the kind that is meant."""
    plain = word.lower()
    return next((k for k in KINDS if plain in (k.resource.kind.lower(), k.resource.plural)), None)


def listed(
    server: OneShot, namespace: str, kinds: Iterable[Kind] = KINDS
) -> tuple[list[JobSummary], list[str]]:
    """Jobs, newest first, and the kinds that may not be listed."""
    jobs: list[JobSummary] = []
    closed: list[str] = []
    for kind in kinds:
        resource = kind.resource
        try:
            page = server.call(requests.list_page(resource, namespace, limit=0), _List)
        except NotFound:
            continue
        except Forbidden:
            closed.append(resource.plural)
            continue
        jobs += [summary(kind.view(item)) for item in page.items or ()]
    return sorted(jobs, key=lambda job: job.created, reverse=True), closed


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
