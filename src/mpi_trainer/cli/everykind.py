"""Training jobs of every kind that a cluster serves, as one list (AC-17). Pure but for the asking.

Kinds differ in where they keep their state: most have Kubeflow's six conditions, a TrainJob has
its own. A kind that the cluster does not have, or that the caller may not list, is no error where
others can be listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from mpi_trainer.api import conditions as c
from mpi_trainer.api.conditions import Condition
from mpi_trainer.api.meta import ApiValue
from mpi_trainer.cli import spans
from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import Forbidden, NotFound
from mpi_trainer.kube.oneshot import OneShot
from mpi_trainer.kube.resources import MPIJOBS, TRAINJOBS, Resource

_LONG_AGO = datetime.fromtimestamp(0, UTC)
COLUMNS: Final = ("KIND", "NAME", "STATE", "AGE", "DURATION")


def _legacy(kind: str) -> Resource:
    return Resource("kubeflow.org", "v1", f"{kind.lower()}s", kind)


KINDS: Final = (
    MPIJOBS,
    TRAINJOBS,
    *(_legacy(kind) for kind in ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob")),
)


class _Meta(ApiValue, frozen=True):
    name: str = ""
    namespace: str = ""
    creation_timestamp: datetime = _LONG_AGO


class _Counts(ApiValue, frozen=True):
    active: int = 0
    ready: int = 0


class _Policy(ApiValue, frozen=True):
    suspend: bool | None = None


class _Spec(ApiValue, frozen=True):
    suspend: bool | None = None
    run_policy: _Policy = _Policy()


class _Status(ApiValue, frozen=True):
    conditions: tuple[Condition, ...] | None = None
    start_time: datetime | None = None
    completion_time: datetime | None = None
    jobs_status: tuple[_Counts, ...] = ()


class Found(ApiValue, frozen=True):
    """A job of any kind, as far as a list shows it."""

    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class Row(msgspec.Struct, frozen=True):
    kind: str
    namespace: str
    name: str
    state: str
    created: datetime
    seconds: float | None = None


class _List(msgspec.Struct, frozen=True):
    items: tuple[Found, ...] | None = None


def resource(word: str) -> Resource | None:
    """`trainjob`, `TrainJobs` … as the kind that is meant."""
    plain = word.lower()
    return next((k for k in KINDS if plain in (k.kind.lower(), k.plural)), None)


def listed(
    server: OneShot, namespace: str, kinds: Iterable[Resource] = KINDS
) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    """Rows, newest first, and the kinds that may not be listed."""
    rows: list[Row] = []
    closed: list[str] = []
    for kind in kinds:
        try:
            page = server.call(requests.list_page(kind, namespace, limit=0), _List)
        except NotFound:
            continue
        except Forbidden:
            closed.append(kind.plural)
            continue
        rows += [row(kind.kind, found) for found in page.items or ()]
    return tuple(sorted(rows, key=lambda each: each.created, reverse=True)), tuple(closed)


def row(kind: str, found: Found) -> Row:
    conditions = found.status.conditions or ()
    state = _train_state(found) if kind == TRAINJOBS.kind else c.state(conditions)
    began, ended = found.status.start_time, found.status.completion_time
    if kind == TRAINJOBS.kind:
        began = found.metadata.creation_timestamp
        last = [x for x in conditions if x.type in ("Complete", "Failed") and x.status == c.TRUE]
        ended = last[0].last_transition_time if last else None
    seconds = (ended - began).total_seconds() if began and ended else None
    meta = found.metadata
    return Row(kind, meta.namespace, meta.name, state, meta.creation_timestamp, seconds)


def _train_state(found: Found) -> str:
    """A TrainJob's state in the six words of the other kinds."""
    holding = {x.type for x in found.status.conditions or () if x.status == c.TRUE}
    for kind, word in (
        ("Complete", c.SUCCEEDED),
        ("Failed", c.FAILED),
        ("Suspended", c.SUSPENDED),
    ):
        if kind in holding:
            return word
    if any(counts.active or counts.ready for counts in found.status.jobs_status):
        return c.RUNNING
    return c.CREATED


def cells(each: Row, now: datetime, *, everywhere: bool) -> tuple[str, ...]:
    took = spans.short(each.seconds) if each.seconds is not None else "-"
    age = spans.between(each.created, now)
    where = (each.namespace,) if everywhere else ()
    return (*where, each.kind, each.name, each.state, age, took)


def columns(*, everywhere: bool) -> tuple[str, ...]:
    return (*(("NAMESPACE",) if everywhere else ()), *COLUMNS)


def data(rows: Sequence[Row]) -> Mapping[str, Any]:
    return {"kind": "List", "items": [msgspec.to_builtins(each) for each in rows]}
