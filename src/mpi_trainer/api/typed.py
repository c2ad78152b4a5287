"""Reading data into typed values, from any thread.

msgspec builds what it knows of a type when the type is first used, and two threads that do so at
once crash the interpreter (0.22). Guarantee: here a type is built once, by one thread. Danger: a
type that is first used past this module is not protected.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_building = threading.Lock()
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """Of JSON into this type, which may be a union; the same one for all."""
    found = _decoders.get(kind)
    if found is None:
        with _building:
            found = _decoders[kind] = msgspec.json.Decoder(kind)
    return found


def decode(body: bytes | str | msgspec.Raw, kind: type[T]) -> T:
    value: T = decoder(kind).decode(body)
    return value


def convert(data: Any, kind: type[T], hook: Callable[[type, Any], Any] | None = None) -> T:
    """`hook` makes values of types that msgspec does not know."""
    decoder(kind)
    return msgspec.convert(data, kind, dec_hook=hook)
