"""The newest lines of a job out of a store, page by page, each older than the one before.

A page is cut behind its oldest time, and the next one begins with all of that time. Guarantee:
at most `MOST_LINES` and `MOST_BYTES` within `SECONDS`; what lies outside the time that was asked
for, or belongs to another namespace or pod, is not taken, whatever the store answers.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

import msgspec

from mpi_trainer.api.kinds import mpijob
from mpi_trainer.sdk.backends.backend import JobView, LogQuery
from mpi_trainer.server.log_stores.asking import TooLarge, unread

PAGE: Final = 1000
LARGEST_PAGE: Final = 5000
"""where all lines of a page are of one time; more a Loki does not give unless it is told to"""
FEWEST: Final = 10
"""lines of a page, where lines are so long that more make an answer too large"""
MOST_LINES: Final = 10_000
"""as many as a call may ask for"""
MOST_BYTES: Final = 16 * 1024 * 1024
SECONDS: Final = 60.0
_LATE: Final = timedelta(minutes=5)
"""after a job's end, for lines that were collected late"""
_BEFORE_ALL: Final = datetime.fromtimestamp(0, UTC)


class Entry(msgspec.Struct, frozen=True):
    """`at` is in nanoseconds since the epoch."""

    at: int
    namespace: str
    pod: str
    text: str


class Asked(msgspec.Struct, frozen=True):
    """`pods` is a regular expression that RE2, Lucene and we read alike. `start` is within, `end`
    is not; in nanoseconds. `most`: lines that are enough."""

    namespace: str
    pods: str
    start: int
    end: int
    limit: int = PAGE
    most: int = MOST_LINES


class Pages(Protocol):
    async def page(self, asked: Asked) -> Sequence[Entry]:
        """The newest entries that fit; `TooLarge`, JobError. Oldest first, and entries of one time
        in the order in which they were written."""


class Found(msgspec.Struct, frozen=True):
    """Oldest first; `more` where older ones are left out."""

    entries: Sequence[Entry]
    more: bool = False


def asked(job: JobView, query: LogQuery) -> Asked:
    """The time in which the job was there: another one of its name may have been before it."""
    began = job.times.created or _BEFORE_ALL
    ended = (job.times.completed or datetime.now(UTC)) + _LATE
    return Asked(
        job.namespace,
        pods(job, query),
        nanoseconds(max(began, query.since) if query.since else began),
        nanoseconds(min(ended, query.until) if query.until else ended) + 1,
        most=MOST_LINES if query.tail is None or _chooses(query) else query.tail,
    )


def _chooses(query: LogQuery) -> bool:
    """Whether lines are left out that the store has no names for."""
    return bool(query.rank is not None or query.grep or query.level)


async def newest(store: Pages, first: Asked) -> Found:
    try:
        async with asyncio.timeout(SECONDS):
            return await _newest(store, first)
    except TimeoutError as error:
        raise unread(f"it took longer than {SECONDS:g} seconds") from error


async def _newest(store: Pages, first: Asked) -> Found:
    if first.start >= first.end:
        return Found(())
    wanted = re.compile(first.pods)
    found: list[Entry] = []
    size, part = 0, first
    while True:
        try:
            given = await store.page(part)
        except TooLarge:
            if part.limit <= FEWEST:
                raise unread("its lines are too long") from None
            part = msgspec.structs.replace(part, limit=max(FEWEST, part.limit // 4))
            continue
        if any(one.namespace != first.namespace for one in given):
            raise unread("it answers with lines of other namespaces")
        page = [e for e in given if part.start <= e.at < part.end and wanted.fullmatch(e.pod)]
        whole = len(given) < part.limit
        oldest = min((one.at for one in page), default=part.start)
        # Of the oldest time there may be more, in whichever order: the next page has all of it.
        sure = page if whole else [one for one in page if one.at > oldest]
        if not sure and not whole and part.limit < LARGEST_PAGE:
            part = msgspec.structs.replace(part, limit=LARGEST_PAGE)
            continue
        fresh = sure or page
        found = [*fresh, *found]
        size += sum(len(one.text) for one in fresh)
        if whole or not sure or len(found) >= first.most or size >= MOST_BYTES:
            return Found(found[-MOST_LINES:], not whole or len(found) > MOST_LINES)
        part = msgspec.structs.replace(part, end=oldest + 1)


def pods(job: JobView, query: LogQuery) -> str:
    """A regular expression for the pods whose lines the query asks for."""
    name = re.escape(job.name)
    if job.kind == mpijob.KIND:
        launcher, worker = f"{name}-launcher(-[a-z0-9]+)?", f"{name}-worker-"
        after = ""
    else:
        launcher, worker = f"{name}-launcher-0-0-[a-z0-9]+", f"{name}-node-0-"
        after = "-[a-z0-9]+"
    if query.worker is not None:
        return f"{worker}{query.worker}{after}"
    every = f"{launcher}|{worker}[0-9]+{after}"
    if query.pod:
        return re.escape(query.pod) if re.fullmatch(every, query.pod) else "-"
    return every if query.all_pods else launcher


def nanoseconds(at: datetime) -> int:
    """Exactly: a float of so many would be a little before or after."""
    return (at - _BEFORE_ALL) // timedelta(microseconds=1) * 1000
