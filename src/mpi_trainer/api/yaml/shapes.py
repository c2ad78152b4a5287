"""What the fields of a Struct take, read off its definition, one Struct at a time.

`msgspec.inspect` describes all that lies below a type at once, which for a job costs several times
what reading one does. Here a Struct is looked at when the first value for it comes. Danger: it
knows the types that our Structs are made of, and leaves every other to `msgspec.inspect`.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping
from types import UnionType
from typing import NamedTuple, Union, get_args, get_origin

import msgspec
import msgspec.inspect as mi


class StructShape(mi.Type):
    """An object; `fields` says what is in it."""

    cls: type[msgspec.Struct]


class Field(NamedTuple):
    """`shape` is the field's own, without what is inside its Structs."""

    name: str
    shape: mi.Type
    required: bool


def shape(kind: type) -> mi.Type:
    return _shape(kind)


@functools.cache
def fields(kind: type[msgspec.Struct]) -> Mapping[str, Field]:
    """By the names that they have on the wire."""
    found = msgspec.structs.fields(kind)
    return {f.encode_name: Field(f.name, _shape(f.type), f.required) for f in found}


@functools.cache
def _shape(kind: Hashable) -> mi.Type:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return StructShape(kind)
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return mi.UnionType(tuple(_shape(part) for part in parts))
    if origin is tuple and parts[1:] == (...,):
        return mi.VarTupleType(_shape(parts[0]))
    if origin in (dict, Mapping):
        return mi.DictType(_shape(parts[0]), _shape(parts[1]))
    return mi.type_info(kind)
