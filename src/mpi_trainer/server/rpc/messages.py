"""Values of the REST API as messages, field by field of the same name. Pure.

A field that the message does not have is left out; `tests/unit/server/test_rpc_messages.py` says
which those are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from mpi_trainer.server import values
from mpi_trainer.server.rpc.v1 import mpijobs_pb2 as v1

M = TypeVar("M", bound=Message)
NAMES: Final = {"continue_": "continue_token", "manifest": "manifest_json"}


def filled(kind: type[M], value: msgspec.Struct) -> M:
    """A message with the fields of the value."""
    made = kind()
    _fill(made, value)
    return made


def job(value: values.Job, etag: str) -> v1.MPIJob:
    """`etag` as HTTP has it, in quotes."""
    made = filled(v1.MPIJob, value)
    made.etag = etag.strip('"')
    return made


def state_words(states: Iterable[int]) -> str:
    """States of a filter as REST takes them; the word of a number that is unknown is none."""
    known = v1.JobState.DESCRIPTOR.values_by_number
    found = (known[one].name if one in known else str(one) for one in states)
    return ",".join(one.removeprefix("JOB_STATE_").capitalize() for one in found)


def _fill(message: Any, value: msgspec.Struct) -> None:
    for field in msgspec.structs.fields(type(value)):
        name = NAMES.get(field.name, field.name)
        described = message.DESCRIPTOR.fields_by_name.get(name)
        found = getattr(value, field.name)
        if described is not None and found is not None:
            _set(message, described, found)


def _set(message: Any, field: FieldDescriptor, value: Any) -> None:
    place = getattr(message, field.name)
    if field.name == NAMES["manifest"]:
        setattr(message, field.name, msgspec.json.encode(value).decode())
    elif isinstance(value, datetime):
        place.FromDatetime(value)
    elif isinstance(value, msgspec.Struct):
        place.SetInParent()
        _fill(place, value)
    elif isinstance(value, Mapping):
        place.update(value)
    elif isinstance(value, tuple):
        for one in value:
            if isinstance(one, msgspec.Struct):
                _fill(place.add(), one)
            else:
                place.append(one)
    elif field.enum_type is not None:
        setattr(message, field.name, _number(field.enum_type, value))
    else:
        setattr(message, field.name, value)


def _number(enum: EnumDescriptor, word: str) -> int:
    """JOB_STATE_RUNNING for `Running`."""
    prefix = enum.values[0].name.removesuffix("UNSPECIFIED")
    number: int = enum.values_by_name[f"{prefix}{word.upper()}"].number
    return number
