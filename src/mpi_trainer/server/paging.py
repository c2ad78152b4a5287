"""Which jobs of a list, in which order, and which part of it. Pure.

A page begins behind the place where the last one ended, not at a number, so a job that stays is
neither lost nor doubled when others come or go. A token holds that place and the name of what was
read for it (`job_reads.py`), and no rights. Durations count to the time of the first page.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

import msgspec

from mpi_trainer.api import label_selector
from mpi_trainer.api.errors import INVALID, FieldError
from mpi_trainer.api.yaml import typed
from mpi_trainer.sdk.backends.backend import JobSummary
from mpi_trainer.server.filters import Filters, counted
from mpi_trainer.server.problems import bad_request
from mpi_trainer.server.values import Facets

SortBy = Literal[
    "created",
    "name",
    "namespace",
    "state",
    "workers",
    "duration",
    "progress",
    "gpus",
    "kind",
    "queue",
]
Place = tuple[bool, float | str, str, str, str]
"""whether there is no value, the value, and what tells apart jobs that have the same"""


class ListQuery(Filters, frozen=True, rename="camel"):
    """Filters, the order, and the part of the list."""

    sort_by: SortBy = "created"
    order: Literal["asc", "desc"] | None = None
    """newest first by default, other values smallest first"""
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 100
    continue_: str = msgspec.field(name="continue", default="")

    @property
    def descending(self) -> bool:
        return self.order == "desc" if self.order else self.sort_by == "created"


class ShortListQuery(ListQuery, frozen=True, rename="camel"):
    namespace: str = ""
    """of all namespaces where it is empty"""


class Token(msgspec.Struct, frozen=True, array_like=True):
    """Where a page ended. `query` is a digest: a token is for the same filters and order."""

    query: str
    at: float
    place: Place
    read: str = ""


class Page(msgspec.Struct, frozen=True):
    jobs: tuple[JobSummary, ...]
    total: int
    facets: Facets
    token: str = ""


def read_of(query: ListQuery) -> str:
    """The name of what was read for the pages before; refuses what is no token for this list."""
    return _read(query).read if query.continue_ else ""


def page(jobs: Iterable[JobSummary], query: ListQuery, now: datetime, read: str = "") -> Page:
    """`jobs` are those of the query's labels, by the name of `read`."""
    token = _read(query) if query.continue_ else None
    at = datetime.fromtimestamp(token.at, UTC) if token else now
    value = _VALUES[query.sort_by]
    taken, facets = counted(jobs, query)
    placed = [(_place(job, value(job, at), query), job) for job in taken]
    placed.sort(key=lambda pair: pair[0], reverse=query.descending)
    rest = placed if token is None else [p for p in placed if _after(p[0], token.place, query)]
    shown = rest[: query.limit]
    more = len(rest) > len(shown)
    following = Token(_digest(query), at.timestamp(), shown[-1][0], read) if more else None
    return Page(tuple(job for _, job in shown), len(placed), facets, _written(following))


def check_selector(text: str) -> None:
    try:
        label_selector.parse(text)
    except label_selector.BadSelector as error:
        raise bad_request([FieldError(("labelSelector",), INVALID, text, str(error))]) from None


def _place(job: JobSummary, value: float | str | None, query: ListQuery) -> Place:
    """What has no such value comes last, in either order."""
    missing = (value is None) is not query.descending
    none = "" if query.sort_by in _TEXTS else 0.0
    return (missing, none if value is None else value, job.key.namespace, job.key.name, job.kind)


def _after(place: Place, last: Place, query: ListQuery) -> bool:
    return place < last if query.descending else place > last


def _duration(job: JobSummary, now: datetime) -> float | None:
    end = job.completed or (now if job.state == "Running" else None)
    return None if job.started is None or end is None else (end - job.started).total_seconds()


_VALUES: Final[Mapping[SortBy, Callable[[JobSummary, datetime], float | str | None]]] = {
    "created": lambda job, now: job.created.timestamp(),
    "name": lambda job, now: job.key.name,
    "namespace": lambda job, now: job.key.namespace,
    "state": lambda job, now: job.state,
    "workers": lambda job, now: float(job.workers),
    "duration": _duration,
    "progress": lambda job, now: job.progress.fraction if job.progress else None,
    "gpus": lambda job, now: float(job.gpus),
    "kind": lambda job, now: job.kind,
    "queue": lambda job, now: job.queue or None,
}
_TEXTS: Final = frozenset({"name", "namespace", "state", "kind", "queue"})


def _digest(query: ListQuery) -> str:
    same = msgspec.structs.replace(query, continue_="", limit=1)
    return hashlib.sha256(msgspec.json.encode(same)).hexdigest()[:16]


def _written(token: Token | None) -> str:
    if token is None:
        return ""
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _read(query: ListQuery) -> Token:
    text = query.continue_
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
        found = typed.decode(data, Token)
        datetime.fromtimestamp(found.at, UTC)
    except (binascii.Error, msgspec.MsgspecError, ValueError, OverflowError, OSError):
        raise _bad_token("it is no token of this server") from None
    if found.query != _digest(query):
        raise _bad_token("it belongs to a list with other parameters")
    if isinstance(found.place[1], str) is not (query.sort_by in _TEXTS):
        raise _bad_token("it is no token of this server")
    return found


def _bad_token(rule: str) -> Exception:
    remedy = "leave it out to begin with the first page"
    return bad_request([FieldError(("continue",), INVALID, rule=rule, remedy=remedy)])
