"""Which jobs of a list are asked for, and how many each other choice would give. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from mpi_trainer.sdk.backends.backend import JobSummary
from mpi_trainer.server.values import Facets, State

MOST_VALUES: Final = 200
"""of one facet: a cluster may have thousands of owners"""
_COMMAS: Final = 8
"""within one value"""


class Filters(msgspec.Struct, frozen=True, rename="camel"):
    """`name` is a part of it; `labelSelector` is as kubectl writes it; of the others a job has one
    of the values, which may have commas themselves, as the owner `CN=Jane,OU=ml` has."""

    state: tuple[State, ...] = ()
    name: str = ""
    label_selector: str = ""
    implementation: str = ""
    kind: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    runtime: tuple[str, ...] = ()
    owner: tuple[str, ...] = ()


def counted(jobs: Iterable[JobSummary], asked: Filters) -> tuple[list[JobSummary], Facets]:
    """The jobs that all filters take, and the facets. A job that only one filter refuses counts
    for that one's facet."""
    chosen: Mapping[str, frozenset[str]] = {
        name: _values(given) for name in _CHOSEN if (given := getattr(asked, name))
    }
    counts: dict[str, Counter[str]] = {name: Counter() for name in _VALUES}
    taken = []
    for job in jobs:
        if asked.name not in job.key.name or asked.implementation not in ("", job.implementation):
            continue
        refusing = [name for name, given in chosen.items() if _VALUES[name](job) not in given]
        if len(refusing) > 1:
            continue
        if not refusing:
            taken.append(job)
        for name in refusing:
            counts[name][_VALUES[name](job)] += 1
    for name, value in _VALUES.items():
        counts[name].update(map(value, taken))
    return taken, Facets(**{name: _frequent(found) for name, found in counts.items()})


def _values(given: tuple[str, ...]) -> frozenset[str]:
    """What stands between commas, and what some of them may have belonged to."""
    ends = ((begin, begin + 1 + more) for begin in range(len(given)) for more in range(_COMMAS + 1))
    return frozenset(",".join(given[begin:end]) for begin, end in ends)


def _frequent(found: Counter[str]) -> dict[str, int]:
    return {value: number for value, number in found.most_common(MOST_VALUES + 1) if value}


_VALUES: Final[Mapping[str, Callable[[JobSummary], str]]] = {
    "state": lambda job: job.state,
    "kind": lambda job: job.kind,
    "queue": lambda job: job.queue,
    "runtime": lambda job: job.runtime,
    "owner": lambda job: job.owner,
    "namespace": lambda job: job.key.namespace,
}
_CHOSEN: Final = tuple(name for name in _VALUES if name in Filters.__struct_fields__)
"""a namespace is not: the list that is read is of one, or of all"""
