"""Reading data into typed values, from any thread.

msgspec builds what it knows of a type when the type is first used, and two threads that do so at
once crash the interpreter (0.22). Guarantee: here a type is built once, by one thread. Danger: a
type that is first used past this module is not protected.
Nesting past what the interpreter allows is `TooDeep`, an ordinary error of one object; what is
left of that object is `shallow`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.yaml import nesting

T = TypeVar("T")

_building = threading.Lock()
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


class TooDeep(msgspec.ValidationError):
    """JSON that is nested too deeply to be decoded."""

    def __init__(self) -> None:
        super().__init__(f"it is nested too deeply, more than {bounds.NESTING} levels")


def decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """Of JSON into this type, which may be a union; the same one for all."""
    found = _decoders.get(kind)
    if found is None:
        with _building:
            found = _decoders[kind] = msgspec.json.Decoder(kind)
    return found


def decode(body: bytes | str | msgspec.Raw, kind: type[T]) -> T:
    value: T = decoded(decoder(kind), body)
    return value


def decoded(with_decoder: msgspec.json.Decoder[Any], body: bytes | str | msgspec.Raw) -> Any:
    try:
        return with_decoder.decode(body)
    except RecursionError:
        raise TooDeep from None


def shallow(body: bytes) -> bytes:
    """What `TooDeep` was raised for, without its depths. Takes time: not on an event loop."""
    return nesting.pruned(body, bounds.DECODED_NESTING)


def convert(data: Any, kind: type[T], hook: Callable[[type, Any], Any] | None = None) -> T:
    """`hook` makes values of types that msgspec does not know."""
    decoder(kind)
    return msgspec.convert(data, kind, dec_hook=hook)
