"""A job's status as it is stored: read leniently, and written as a merge patch. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from mpi_trainer.api.kinds.meta import ApiValue
from mpi_trainer.api.yaml import typed
from mpi_trainer.api.yaml.decode import decode

T = TypeVar("T", bound=ApiValue)


def read(raw: bytes | msgspec.Raw, kind: type[T]) -> T:
    """The stored status; what another controller wrote strangely is read as far as it can be."""
    try:
        return typed.decode(raw, kind)
    except msgspec.ValidationError:
        data = msgspec.json.decode(raw)
        return decode(kind, data if isinstance(data, dict) else {}).value


def patch(old: ApiValue, new: ApiValue, resource_version: str) -> dict[str, object]:
    """A merge patch from the status that was looked at to the new one, and to no other."""
    changes = _difference(wire(old), wire(new))
    return {"metadata": {"resourceVersion": resource_version}, "status": changes}


def wire(status: ApiValue) -> dict[str, Any]:
    """As Kubernetes writes it: times in whole seconds, nothing that is not set."""
    fields: dict[str, Any] = msgspec.to_builtins(status, builtin_types=(datetime,))
    plain: dict[str, Any] = _in_seconds(fields)
    return plain


def _in_seconds(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, dict):
        return {key: _in_seconds(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_in_seconds(item) for item in value]
    return value


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = _difference(before, value)
            if inner:
                changes[key] = inner
        elif value != before or key not in old:
            changes[key] = value
    return changes
