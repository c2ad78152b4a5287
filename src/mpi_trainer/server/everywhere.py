"""Jobs of all namespaces, for callers who may list them only in some.

Guarantee: every list is asked for with the caller's own rights, at most `MOST` namespaces of those
they can see, `AT_ONCE` at a time; what is left out is said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from mpi_trainer.sdk.backends.backend import Backend, JobQuery, JobSummary
from mpi_trainer.sdk.errors import K8sApiException

MOST: Final = 200
AT_ONCE: Final = 8
Found = tuple[Sequence[JobSummary], tuple[str, ...]]


async def jobs(backend: Backend, namespace: str, query: JobQuery) -> Found:
    """Newest first, with notes; of every namespace where none is named."""
    try:
        return await backend.list(namespace or None, query), ()
    except K8sApiException as refusal:
        if namespace or refusal.status != HTTPStatus.FORBIDDEN:
            raise
        return await _of_each(backend, query, refusal)


async def _of_each(backend: Backend, query: JobQuery, refusal: K8sApiException) -> Found:
    """Raises what was said to the whole list where no namespace is open."""
    seen = await backend.namespaces()
    room = asyncio.Semaphore(AT_ONCE)

    async def one(namespace: str) -> Sequence[JobSummary] | None:
        async with room:
            try:
                return await backend.list(namespace, query)
            except K8sApiException as error:
                if error.status != HTTPStatus.FORBIDDEN:
                    raise
                return None

    asked = [asyncio.ensure_future(one(namespace)) for namespace in seen[:MOST]]
    try:
        parts = await asyncio.gather(*asked)
    finally:
        for each in asked:
            each.cancel()  # where one has failed nobody waits for the rest
    open_ones = [part for part in parts if part is not None]
    if not open_ones:
        raise refusal
    found = [job for part in open_ones for job in part]
    found.sort(key=lambda job: job.created, reverse=True)
    return found, (_note(len(open_ones), len(seen)),)


def _note(listed: int, seen: int) -> str:
    rest = f"; {seen - MOST} more are not looked into" if seen > MOST else ""
    plural = "namespace" if listed == 1 else "namespaces"
    return f"you may not list jobs of all namespaces: these are of {listed} {plural}{rest}"
