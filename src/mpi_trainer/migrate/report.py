"""What became of each field of a description: carried, changed in meaning, or not carried.

Guarantee: `complete` leaves no field of the source without a line, whatever was written in it; who
converts need only say what it knows. Linear in the size of the source.
Danger: a line for a path speaks for everything below it, but for what has a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.errors import FieldError, Path, Position, field

Fate = Literal["carried", "changed", "lost"]
CARRIED: Fate = "carried"
CHANGED: Fate = "changed"
LOST: Fate = "lost"

UNKNOWN = "this field has no counterpart that is known here"
MOST_UNKNOWN = bounds.ERRORS
"""fields without a counterpart that are told of one job; the others are counted"""

TIES = ("ownerReferences", "finalizers")
TIED = "it ties the old object to others", "have whoever made the old object make the new one"
"""what is said of metadata in `TIES`: note and remedy"""

Object = dict[str, Any]


class FieldReport(msgspec.Struct, frozen=True):
    """`to` is where the value went; `remedy` is what is left for the user to do, if anything.
    `of`: the kind on the way whose field it is, where that is not the source's own."""

    path: Path
    fate: Fate
    to: str = ""
    note: str = ""
    remedy: str = ""
    of: str = ""

    @property
    def field(self) -> str:
        return field(self.path)


class Converted(msgspec.Struct, frozen=True):
    """One description, and what it became: `objects` in the order in which to apply them.

    Where there are `errors` it became nothing.
    """

    kind: str
    api_version: str
    name: str
    namespace: str = ""
    objects: tuple[Object, ...] = ()
    fields: tuple[FieldReport, ...] = ()
    errors: tuple[FieldError, ...] = ()
    through: Mapping[str, Any] = {}
    """the MPIJob v2beta1 that a TrainJob was made of; empty for other results"""
    place: Position | None = None
    """where the name stands, if it was read from a text"""

    @property
    def effort(self) -> str:
        """What is left to do: nothing, to read the notes, or to change something first."""
        if self.errors:
            return "blocked"
        return "some" if any(one.remedy for one in self.fields) else "none"


def complete(source: Mapping[str, Any], told: Iterable[FieldReport]) -> tuple[FieldReport, ...]:
    """`told`, and a line for each field of `source` that it says nothing of; in order of paths."""
    lines = tuple(told)
    known: dict[Any, Any] = {}
    for line in lines:
        level = known
        for part in line.path:
            level = level.setdefault(part, {})
        level[None] = True
    silent = list(_untold(source, known, ()))
    missing = [FieldReport(path, LOST, note=UNKNOWN) for path in silent[:MOST_UNKNOWN]]
    if len(silent) > MOST_UNKNOWN:
        note = f"and {len(silent) - MOST_UNKNOWN} more fields without a counterpart"
        missing.append(FieldReport((), LOST, note=note))
    return (*lines, *missing)


def _untold(value: Any, known: Mapping[Any, Any], path: Path) -> Iterator[Path]:
    if None in known:
        return
    if isinstance(value, Mapping) and value and (known or not path):
        for key, item in value.items():
            yield from _untold(item, known.get(key, {}), (*path, key))
    elif isinstance(value, list) and value and known:
        for n, item in enumerate(value):
            yield from _untold(item, known.get(n, {}), (*path, n))
    elif value not in (None, "", [], {}):
        yield path
