"""The jobs that a caller may see, and every change of them, as events.

First a `snapshot`, then `job` and `deleted`; `resync` where changes may have been missed. Ends with
a problem when the login has expired or a right is gone. Everything comes from shared watches, which
a caller joins only as far as the API server lets them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from typing import Final

from mpi_trainer.sdk.backends.backend import JobSummary
from mpi_trainer.server.live import values
from mpi_trainer.server.live.access import Reader, forbidden
from mpi_trainer.server.live.endpoint import LiveCall
from mpi_trainer.server.live.hub import Hub
from mpi_trainer.server.live.shared import Mailbox, Scope, SharedWatch
from mpi_trainer.server.live.values import Sent
from mpi_trainer.server.problems import Refused, refused
from mpi_trainer.server.told_lists import Told

MOST_NAMESPACES: Final = 100


async def job_list(call: LiveCall) -> AsyncGenerator[Sent, None]:
    """Never ends by itself."""
    hub, reader, kinds = call.hub, call.reader, _kinds(call)
    scopes = await _scopes(hub, reader, kinds, call.given_namespace)
    box = Mailbox(reader)
    watches = [hub.watches.join(scope, box) for scope in scopes]
    told = call.reads.shared.told.open(reader.id, call.given_namespace, _told(call, watches))
    with told, _left(hub, watches, box):
        await _synced(watches, box)
        box.take()
        yield _all("snapshot", watches)
        while True:
            await _wait(hub, reader, box)
            # Before anything is given: time may have passed while the reader was slow.
            await _check(hub, reader, scopes)
            if box.error is not None:
                raise box.error
            if box.anew:
                box.take()
                yield _all("resync", watches)
            for entry in box.take():
                name = "deleted" if entry.deleted else "job"
                yield Sent(name, values.Shared((entry.body,)), entry.job.resource_version)
                if box.anew:
                    break


@contextmanager
def _left(hub: Hub, watches: list[SharedWatch], box: Mailbox) -> Iterator[None]:
    try:
        yield
    finally:
        hub.watches.leave(watches, box)


def _told(call: LiveCall, watches: list[SharedWatch]) -> Told:
    """What this stream holds, for lists that its reader asks for meanwhile. Nothing where it may be
    behind, or holds less than a list would: then the list is read, and says why."""
    hub, reader, namespace = call.hub, call.reader, call.given_namespace

    async def told(kind: str) -> list[JobSummary] | None:
        wanted = [one for one in watches if kind in ("", one.kind)]
        current = all(one.namespace == namespace and one.current for one in wanted)
        if not (wanted and current and call.backend.live.prompt):
            return None
        try:
            await _check(hub, reader, tuple(one.scope for one in wanted))
            if not kind and await _more(call, watches):
                return None
        except Refused:
            return None
        found = [entry.job for one in wanted for entry in one.jobs.values()]
        # Of none at all only a list says whether the cluster has such jobs.
        return sorted(found, key=lambda job: job.created, reverse=True) or None

    return told


async def _more(call: LiveCall, watches: list[SharedWatch]) -> bool:
    """Whether a list of the reader's would have kinds that the stream has not."""
    rest = set(call.backend.live.kinds) - {one.kind for one in watches}
    asked = (call.hub.access.list_jobs(call.reader, kind, call.given_namespace) for kind in rest)
    return any(await asyncio.gather(*asked))


def _kinds(call: LiveCall) -> tuple[str, ...]:
    known, asked = call.backend.live.kinds, call.query.kind
    wrong = [one for one in asked if one not in known]
    if wrong:
        hint = f"Use one or more of {', '.join(known)}."
        raise refused(400, "bad-request", f"kind: there is no {wrong[0][:64]}", hint)
    return tuple(one for one in known if not asked or one in asked)


async def _scopes(
    hub: Hub, reader: Reader, kinds: tuple[str, ...], namespace: str
) -> tuple[Scope, ...]:
    """What to watch. A kind that the caller may not see is passed over where they may see another;
    without the right for all namespaces, those that they may see are watched one by one."""
    found = await _allowed(hub, reader, product(kinds, (namespace,)))
    if not found and not namespace:
        spaces = await reader.backend.namespaces()
        if len(spaces) > MOST_NAMESPACES:
            raise refused(
                403,
                "cluster",
                f"forbidden: you may not watch jobs of all namespaces, and see {len(spaces)}",
                "Name one of them with the parameter namespace.",
            )
        found = await _allowed(hub, reader, product(kinds, spaces))
    if not found:
        raise forbidden("list and watch jobs", namespace)
    return found


async def _allowed(
    hub: Hub, reader: Reader, places: Iterable[tuple[str, str]]
) -> tuple[Scope, ...]:
    asked = tuple(places)
    answers = await asyncio.gather(
        *(hub.access.watch_jobs(reader, kind, space) for kind, space in asked)
    )
    server = reader.backend.name
    return tuple(
        (server, kind, space)
        for (kind, space), allowed in zip(asked, answers, strict=True)
        if allowed
    )


async def _check(hub: Hub, reader: Reader, scopes: tuple[Scope, ...]) -> None:
    """Raises where a right is gone; asks at most once in `review` seconds."""
    for _, kind, namespace in scopes:
        if not await hub.access.watch_jobs(reader, kind, namespace):
            raise forbidden(f"list and watch {kind}s", namespace)


async def _synced(watches: list[SharedWatch], box: Mailbox) -> None:
    """Until all have their jobs, or the caller's login is refused."""
    for one in watches:
        while not one.synced.is_set() and box.error is None:
            wakes = {
                asyncio.ensure_future(box.wake.wait()),
                asyncio.ensure_future(one.synced.wait()),
            }
            try:
                await asyncio.wait(wakes, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in wakes:
                    each.cancel()
            if box.error is None:
                box.wake.clear()
    if box.error is not None:
        raise box.error


async def _wait(hub: Hub, reader: Reader, box: Mailbox) -> None:
    """Until there is something to tell, or rights are to be asked for again."""
    with suppress(TimeoutError):
        async with asyncio.timeout(reader.patience(hub.access.seconds)):
            await box.wake.wait()


def _all(event: str, watches: list[SharedWatch]) -> Sent:
    items = tuple(entry.body for one in watches for entry in one.jobs.values())
    version = max((one.version for one in watches), key=_number, default="")
    return Sent(event, values.jobs(items), version)


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0
