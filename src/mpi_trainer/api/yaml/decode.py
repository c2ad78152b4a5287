"""Plain data to typed values, driven by the Struct definitions alone.

Guarantee: one pass finds *all* structural errors — unknown fields, wrong types, numbers out of
range — and never raises; `Decoded.value` is what could be read, with defaults in place of what
could not, so that validation can go on around the faults. null means "not set", as the API server
has it. Pod templates are taken whole: only the fields that `pods` reads are checked.
Of what is wrong at most `bounds.ERRORS` things are told.
Danger: use `value` for anything but finding more errors only when `errors` is empty.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec
import msgspec.inspect as mi

from mpi_trainer.api import bounds
from mpi_trainer.api.errors import (
    INVALID,
    REQUIRED,
    UNKNOWN,
    WRONG_TYPE,
    FieldError,
    Path,
    kind_of,
)
from mpi_trainer.api.kinds.known_fields import FIELDS
from mpi_trainer.api.kinds.meta import PartlyRead
from mpi_trainer.api.kinds.pods import PodTemplate, TemplateView
from mpi_trainer.api.spelling import nearest
from mpi_trainer.api.yaml.shapes import StructShape, fields, shape

T = TypeVar("T")

NO_GUESS = "the fields here are "
"""how the remedy begins for an unknown field that is like none that there is"""
_BAD: Any = object()
_MAX_DEPTH = 120
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAYBE_SECRET = frozenset({"env", "data", "stringData", "args", "command", "annotations"})
_WANTED = {
    mi.StrType: "a string",
    mi.IntType: "an integer",
    mi.FloatType: "a number",
    mi.BoolType: "true or false",
    mi.DateTimeType: "a time such as 2026-01-31T12:00:00Z",
    mi.VarTupleType: "a list",
    mi.DictType: "an object",
    StructShape: "an object",
}
_PYTHON: dict[Any, Any] = {
    mi.StrType: str,
    mi.IntType: int,
    mi.FloatType: (int, float),
    mi.BoolType: bool,
}


class Decoded(msgspec.Struct, Generic[T], frozen=True):
    """`doubtful`: fields whose absence or content is already explained by an error."""

    value: T
    errors: tuple[FieldError, ...]
    warnings: tuple[FieldError, ...]
    doubtful: tuple[Path, ...]


def decode(kind: type[T], data: object) -> Decoded[T]:
    """`data` as a `kind`, which must be a Struct without required fields of its own."""
    work = _Decoder()
    try:
        value = work.value(shape(kind), data, ())
    except _EnoughError:
        value = _BAD
    doubtful = (*(error.path for error in work.errors), *work.doubtful)
    value = kind() if value is _BAD else value
    return Decoded(value, tuple(work.errors), tuple(work.warnings), doubtful)


class _EnoughError(Exception):
    """So much is wrong that nobody reads on."""


class _Decoder:
    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self.warnings: list[FieldError] = []
        self.doubtful: list[Path] = []
        self._guesses = 0

    def value(self, kind: mi.Type, raw: Any, path: Path) -> Any:
        if isinstance(kind, mi.UnionType):
            return self._union(kind, raw, path)
        if isinstance(kind, StructShape):
            return self._struct(kind, raw, path)
        if isinstance(kind, mi.DictType):
            return self._mapping(kind.value_type, raw, path)
        if isinstance(kind, mi.VarTupleType):
            return self._list(kind, raw, path)
        if isinstance(kind, mi.CustomType):
            return self._template(raw, path)
        return self._leaf(kind, raw, path)

    def _leaf(self, kind: mi.Type, raw: Any, path: Path) -> Any:
        if isinstance(kind, mi.AnyType):
            return raw if self._plain(raw, path) else _BAD
        if isinstance(kind, mi.DateTimeType):
            return self._time(kind, raw, path)
        if isinstance(kind, mi.IntType) and isinstance(raw, float) and raw.is_integer():
            raw = int(raw)
        if not _is(kind, raw):
            return self._wrong(_WANTED[type(kind)], raw, path)
        if isinstance(kind, mi.IntType):
            return self._in_range(kind, raw, path)
        return raw if self._plain(raw, path) else _BAD

    def _union(self, kind: mi.UnionType, raw: Any, path: Path) -> Any:
        kinds = [one for one in kind.types if not isinstance(one, mi.NoneType)]
        if len(kinds) == 1:
            return self.value(kinds[0], raw, path)
        fitting = next((one for one in kinds if _is(one, raw)), None)
        if fitting is None:
            wanted = " or ".join(_WANTED[type(one)] for one in kinds)
            return self._wrong(wanted, raw, path)
        return raw if self._plain(raw, path) else _BAD

    def _in_range(self, kind: mi.IntType, raw: int, path: Path) -> Any:
        low, high = kind.ge, kind.le
        if low is None or high is None or low <= raw <= high:
            return raw
        rule = f"must be between {low} and {high}"
        self._error(path, INVALID, raw, rule, "use a smaller number")
        return _BAD

    def _time(self, kind: mi.Type, raw: Any, path: Path) -> Any:
        try:
            return msgspec.convert(raw, datetime)
        except msgspec.ValidationError:
            return self._wrong(_WANTED[type(kind)], raw, path)

    def _struct(self, kind: StructShape, raw: Any, path: Path) -> Any:
        if not isinstance(raw, Mapping):
            return self._wrong(_WANTED[StructShape], raw, path)
        known = fields(kind.cls)
        values: dict[str, Any] = {}
        for name, item in raw.items():
            if not isinstance(name, str) or name not in known:
                self._unknown(kind, name, raw, path)
            elif item is not None:
                got = self.value(known[name].shape, item, (*path, name))
                if got is not _BAD:
                    values[known[name].name] = got
        missing = [n for n, f in known.items() if f.required and f.name not in values]
        for name in missing:
            where = (*path, name)
            if raw.get(name) is None:
                self._error(where, REQUIRED, msgspec.UNSET, "must be set", "add it")
        return _BAD if missing else kind.cls(**values)

    def _unknown(self, kind: StructShape, name: Any, raw: Mapping[Any, Any], path: Path) -> None:
        text = str(name)
        here = (*path, text)
        known = FIELDS.get(kind.cls, frozenset(fields(kind.cls)))
        passed_on = issubclass(kind.cls, PartlyRead)
        if passed_on and text in known:
            return
        # A guess takes long, and nobody reads hundreds of them.
        self._guesses += 1
        meant = nearest(text, sorted(known)) if self._guesses <= bounds.ERRORS else None
        if passed_on:
            if meant is not None:
                remedy = f"did you mean `{meant}`? It is passed on as it is"
                rule = "no such field in a template"
                self.warnings.append(FieldError(here, UNKNOWN, rule=rule, remedy=remedy))
            return
        remedy = NO_GUESS + ", ".join(sorted(known))
        if meant is not None:
            remedy = f"did you mean `{meant}`?"
            if raw.get(meant) is None:
                self.doubtful.append((*path, meant))
        self._error(here, UNKNOWN, msgspec.UNSET, "no such field", remedy)

    def _mapping(self, kind: mi.Type, raw: Any, path: Path) -> Any:
        if not isinstance(raw, Mapping):
            return self._wrong(_WANTED[mi.DictType], raw, path)
        values: dict[str, Any] = {}
        for name, item in raw.items():
            if not isinstance(name, str):
                self._wrong("a string as key", name, (*path, str(name)))
            elif item is not None:
                got = self.value(kind, item, (*path, name))
                if got is not _BAD:
                    values[name] = got
        return values

    def _list(self, kind: mi.VarTupleType, raw: Any, path: Path) -> Any:
        if not isinstance(raw, list | tuple):
            return self._wrong(_WANTED[mi.VarTupleType], raw, path)
        items = [self.value(kind.item_type, item, (*path, n)) for n, item in enumerate(raw)]
        return _BAD if any(item is _BAD for item in items) else tuple(items)

    def _template(self, raw: Any, path: Path) -> Any:
        if not isinstance(raw, Mapping):
            return self._wrong(_WANTED[StructShape], raw, path)
        if not self._plain(raw, path):
            return _BAD
        before = len(self.errors)
        self.value(shape(TemplateView), raw, path)
        faults = [error.path[len(path) :] for error in self.errors[before:]]
        template = PodTemplate.of(raw)
        return PodTemplate.of(_without(template.content, faults)) if faults else template

    def _plain(self, raw: Any, path: Path, depth: int = 0) -> bool:
        """Whether `raw` can be written as JSON; an error where not."""
        if depth > _MAX_DEPTH:
            self._error(path, INVALID, msgspec.UNSET, "is nested too deeply", "flatten it")
            return False
        if isinstance(raw, Mapping):
            return all(
                self._plain(part, (*path, str(key)), depth + 1)
                for key, item in raw.items()
                for part in (self._key(key), item)
            )
        if isinstance(raw, list | tuple):
            return all(self._plain(x, (*path, n), depth + 1) for n, x in enumerate(raw))
        if raw is None or _json_scalar(raw):
            return True
        self._error(path, WRONG_TYPE, msgspec.UNSET, "has no JSON form", "use plain JSON values")
        return False

    @staticmethod
    def _key(key: Any) -> Any:
        return key if isinstance(key, str) else _BAD

    def _wrong(self, wanted: str, raw: Any, path: Path) -> Any:
        hidden = isinstance(raw, Mapping | list | tuple) or not _MAYBE_SECRET.isdisjoint(path)
        rule = f"must be {wanted}, not {kind_of(raw)}"
        shown = msgspec.UNSET if hidden else raw
        self._error(path, WRONG_TYPE, shown, rule, _remedy(wanted, raw, hidden))
        return _BAD

    def _error(self, path: Path, problem: str, value: Any, rule: str, remedy: str) -> None:
        self.errors.append(FieldError(path, problem, value, rule, remedy))
        if len(self.errors) >= bounds.ERRORS:
            raise _EnoughError


def _is(kind: mi.Type, raw: Any) -> bool:
    wanted = _PYTHON[type(kind)]
    return isinstance(raw, wanted) and (isinstance(raw, bool) == (wanted is bool))


def _json_scalar(raw: Any) -> bool:
    if isinstance(raw, str):
        return _SURROGATE.search(raw) is None
    if isinstance(raw, int):
        return -(2**63) <= raw < 2**64
    return isinstance(raw, float) and math.isfinite(raw)


def _remedy(wanted: str, raw: Any, hidden: bool) -> str:
    if wanted == "a list":
        return "start each item with `- `"
    if wanted == "a string" and isinstance(raw, bool | int | float):
        text = str(raw).lower() if isinstance(raw, bool) else str(raw)
        return "put it in quotes" if hidden else f'put it in quotes: "{text}"'
    if isinstance(raw, str) and (raw.lstrip("+-").isdigit() or raw in ("true", "false")):
        return "remove the quotes"
    return f"write {wanted}"


def _without(content: dict[str, Any], faults: list[Path]) -> dict[str, Any]:
    """`content`, which is ours to change, less the innermost field of each fault."""
    for fault in faults:
        names = [n for n, part in enumerate(fault) if isinstance(part, str)]
        place: Any = content
        for part in fault[: names[-1]] if names else ():
            place = place[part] if _holds(place, part) else {}
        if names and isinstance(place, dict):
            place.pop(str(fault[names[-1]]), None)
    return content


def _holds(place: Any, part: str | int) -> bool:
    if isinstance(place, dict):
        return part in place
    return isinstance(place, list) and isinstance(part, int) and part < len(place)
