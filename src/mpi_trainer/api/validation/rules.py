"""Rules that several areas share. Each yields errors; a good value yields none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from mpi_trainer.api import names, quantities
from mpi_trainer.api.errors import (
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    FieldError,
    Path,
)
from mpi_trainer.api.spelling import nearest

Errors = Iterator[FieldError]

GENERATED = "xxxxx"
"""stands for the letters that the API server appends to a generateName"""


def required(path: Path, rule: str, remedy: str) -> FieldError:
    return FieldError(path, REQUIRED, msgspec.UNSET, rule, remedy)


def one_of(path: Path, value: str | None, allowed: Sequence[str]) -> Errors:
    choice = ", ".join(allowed)
    if value is None:
        yield required(path, "must be set", f"use one of {choice}")
    elif value not in allowed:
        meant = nearest(value, allowed)
        remedy = f"did you mean `{meant}`?" if meant else "use one of them"
        yield FieldError(path, NOT_SUPPORTED, value, f"must be one of {choice}", remedy)


def at_least(path: Path, value: int | None, low: int, remedy: str) -> Errors:
    if value is not None and value < low:
        yield FieldError(path, INVALID, value, f"must be at least {low}", remedy)


def at_most(path: Path, count: int, most: int) -> Errors:
    if count > most:
        rule = f"must have at most {most} items, and has {count}"
        yield FieldError(path, INVALID, msgspec.UNSET, rule, "remove some")


def name_errors(path: Path, value: str, fault: names.Fault | None) -> Errors:
    if fault is not None:
        yield FieldError(path, INVALID, value, fault.rule, fault.remedy)


def quantity(path: Path, value: str | int | float) -> Errors:
    try:
        number = quantities.parse(value)
    except ValueError:
        yield FieldError(path, INVALID, value, quantities.RULE, quantities.REMEDY)
        return
    if number < 0:
        yield FieldError(path, INVALID, value, "must not be negative", "remove the minus sign")


def label_map(path: Path, given: Mapping[str, str]) -> Errors:
    for key, value in given.items():
        yield from name_errors((*path, key), key, names.qualified(key))
        yield from name_errors((*path, key), value, names.label_value(value))


def annotation_map(path: Path, given: Mapping[str, str]) -> Errors:
    for key in given:
        yield from name_errors((*path, key), key, names.qualified(key.lower()))
    fault = names.annotations_too_large(given)
    if fault is not None:
        yield FieldError(path, TOO_LONG, msgspec.UNSET, fault.rule, fault.remedy)
