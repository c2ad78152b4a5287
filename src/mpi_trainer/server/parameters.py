"""Parameters of a request read into types; everything that is wrong with them at once. Pure.

A parameter that is unknown, given twice or out of its range is an error and never ignored: a filter
with a slip of the pen must not show all jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from mpi_trainer.api import names
from mpi_trainer.api.errors import DUPLICATE, INVALID, UNKNOWN, FieldError
from mpi_trainer.api.spelling import nearest
from mpi_trainer.server.problems import bad_request

Q = TypeVar("Q", bound=msgspec.Struct)

LONGEST = 1024
"""characters of one parameter; a token that continues a list is the longest"""


def query(kind: type[Q], given: Sequence[tuple[str, str]]) -> Q:
    """Raises a problem that names each parameter."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    errors: list[FieldError] = []
    found: dict[str, Any] = {}
    for name, text in given:
        field = fields.get(name)
        if field is None:
            errors.append(_unknown(name, fields))
        elif field.name in found:
            errors.append(FieldError((name,), DUPLICATE, remedy="give it once"))
        else:
            try:
                found[field.name] = _value(text, field.type)
            except (msgspec.ValidationError, ValueError):
                rule = _rule(msgspec.inspect.type_info(field.type))
                errors.append(FieldError((name,), INVALID, text, rule))
    if errors:
        raise bad_request(errors)
    return kind(**found)


def check_names(path: Iterable[tuple[str, str]]) -> None:
    """Names in a path are those of objects, so that no path of the API server can be made up."""
    errors = [*_path_errors(path)]
    if errors:
        raise bad_request(errors)


def _path_errors(path: Iterable[tuple[str, str]]) -> Iterator[FieldError]:
    for name, text in path:
        if name == "index":
            if not (text.isascii() and text.isdecimal() and len(text) <= 6):
                yield FieldError((name,), INVALID, text, "must be a whole number, 0 or more")
            continue
        check = names.dns1123_label if name == "namespace" else names.dns1123_subdomain
        fault = check(text)
        if fault is not None:
            yield FieldError((name,), INVALID, text, fault.rule, fault.remedy)


def _unknown(name: str, fields: Iterable[str]) -> FieldError:
    known = [*fields]
    meant = nearest(name, known)
    if meant:
        remedy = f"did you mean {meant}?"
    else:
        remedy = f"use one of {', '.join(known)}" if known else "this path takes no parameters"
    return FieldError((name[:LONGEST],), UNKNOWN, remedy=remedy)


def _value(text: str, kind: Any) -> Any:
    if len(text) > LONGEST:
        raise ValueError
    info = msgspec.inspect.type_info(kind)
    if isinstance(info, msgspec.inspect.VarTupleType):
        return msgspec.convert(tuple(filter(None, text.split(","))), kind, strict=False)
    value = msgspec.convert(text, kind, strict=False)
    if isinstance(value, datetime):
        return _utc(value)
    return value


def _utc(time: datetime) -> datetime:
    """ValueError where that is before the first year, or after the last one."""
    try:
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except OverflowError as error:
        raise ValueError from error


def _rule(info: msgspec.inspect.Type) -> str:
    """What a value of this type must be, in words."""
    kinds = msgspec.inspect
    match info:
        case kinds.UnionType():
            said = _rule(next(one for one in info.types if not isinstance(one, kinds.NoneType)))
        case kinds.VarTupleType():
            said = f"{_rule(info.item_type)}, or several of them with commas between"
        case kinds.LiteralType():
            said = f"must be one of {', '.join(str(one) for one in info.values if one)}"
        case kinds.IntType(ge=low, le=None):
            said = f"must be a whole number, {low} or more"
        case kinds.IntType(ge=low, le=high):
            said = f"must be a whole number from {low} to {high}"
        case kinds.BoolType():
            said = "must be true or false"
        case kinds.DateTimeType():
            said = "must be a time as RFC 3339 has it, such as 2026-01-31T12:00:00Z"
        case _:
            said = f"must have at most {LONGEST} characters"
    return said
