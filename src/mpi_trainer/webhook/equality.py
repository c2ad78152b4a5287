"""When two writings of one thing mean the same. Pure.

Clients in Go write an object back from types of their own: an empty string, a false or an empty
list that a user wrote out is gone then, and `1000m` has become `1`. Neither is a change.
Danger: a zero or a false that Go keeps apart from "not set" is not in the lists here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from mpi_trainer.api import quantities

_PLAIN_BOOLEANS = frozenset({"readOnly"})
AMOUNTS = frozenset({"requests", "limits", "divisor", "sizeLimit"})


def same(one: object, other: object) -> bool:
    return bool(_bare(one, False) == _bare(other, False))


def canonical(value: object) -> str:
    """One text for all writings of a thing, even those that leave out a zero or a false."""
    if value and isinstance(value, str):
        return json.dumps(value)
    return json.dumps(_without_zeros(_bare(value, False)), sort_keys=True)


def _without_zeros(value: Any) -> Any:
    if isinstance(value, Mapping):
        fields = {str(key): _without_zeros(item) for key, item in value.items()}
        return {key: item for key, item in fields.items() if item is not None} or None
    if isinstance(value, list):
        return [_without_zeros(item) for item in value]
    return (str(value.normalize()) if isinstance(value, Decimal) else value) if value else None


def _bare(value: Any, amount: bool, name: str = "") -> Any:
    """`value` without what says nothing; `amount`: it is a quantity, or a mapping to some."""
    if isinstance(value, Mapping):
        fields = {
            key: _bare(item, amount or key in AMOUNTS, key)
            for key, item in value.items()
            if key != "creationTimestamp"
        }
        return {key: item for key, item in fields.items() if item is not None} or None
    if isinstance(value, list | tuple):
        return [_bare(item, False) for item in value] or None
    if amount:
        return _number(value, name)
    if value == "" or (value is False and name in _PLAIN_BOOLEANS):
        return None
    return value


def _number(value: Any, name: str) -> Any:
    try:
        number = quantities.parse(value)
    except ValueError:
        return value
    return None if name == "divisor" and not number else number
