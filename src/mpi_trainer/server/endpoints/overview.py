"""Jobs at a glance, of one namespace or of all that the caller can see."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

import msgspec

from mpi_trainer.sdk.backends.backend import ALL_JOBS
from mpi_trainer.sdk.errors import JobError
from mpi_trainer.server import everywhere, values
from mpi_trainer.server.endpoint import Answer, Call, Endpoint
from mpi_trainer.server.overview import overview


class OverviewQuery(msgspec.Struct, frozen=True, rename="camel"):
    """Of all namespaces where none is named; `hours` back from now, at most a year."""

    namespace: str = ""
    hours: Annotated[int, msgspec.Meta(ge=1, le=8784)] = 168


async def glance(call: Call) -> Answer:
    asked: OverviewQuery = call.query
    read, cpus = await asyncio.gather(
        call.reads.read(
            asked.namespace,
            "",
            lambda: everywhere.jobs(call.backend, asked.namespace, ALL_JOBS),
        ),
        _cpus(call, asked.namespace),
    )
    found = await call.reads.cut(
        read,
        lambda: overview(
            read.jobs,
            asked.hours,
            call.now,
            cpus,
            read.notes,
            by_project=not asked.namespace,
        ),
    )
    return Answer(found)


async def _cpus(call: Call, namespace: str) -> float | None:
    """A figure that cannot be had must not hide the others."""
    try:
        return await call.backend.cpus_in_use(namespace or None)
    except JobError:
        return None


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/api/v1/overview",
        "getOverview",
        "Jobs at a glance: states, success, GPUs, who runs, waits and failed",
        glance,
        values.Overview,
        query=OverviewQuery,
    ),
)
