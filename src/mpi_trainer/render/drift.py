"""Where an object on a cluster is not as it was rendered.

Only what is rendered is compared: the server's defaults, what admission added and items of others
in lists are not differences. Lists whose items have names are compared by those. Amounts are
compared as amounts, and an empty value is as good as none, since the server stores neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from mpi_trainer.api.errors import Path, field
from mpi_trainer.api.quantities import parse

_NAMED_BY = ("mountPath", "name")
_AMOUNTS = frozenset({"limits", "requests", "minResources"})


class Change(msgspec.Struct, frozen=True):
    """`live` or `wanted` is UNSET where there is nothing."""

    path: Path
    live: Any
    wanted: Any

    @property
    def field(self) -> str:
        return field(self.path)


def drift(wanted: Any, live: Any, path: Path = ()) -> Iterator[Change]:
    """How `live` must change to be as `wanted`."""
    if _same(path, wanted, live):
        return
    if isinstance(wanted, dict) and isinstance(live, dict):
        for key, value in wanted.items():
            yield from drift(value, live.get(key, msgspec.UNSET), (*path, key))
        return
    ours, theirs = _named(wanted), _named(live)
    if ours is not None and theirs is not None:
        for name, value in ours.items():
            yield from drift(value, theirs.get(name, msgspec.UNSET), (*path, name))
    elif isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
        for n, (one, other) in enumerate(zip(wanted, live, strict=True)):
            yield from drift(one, other, (*path, n))
    else:
        yield Change(path, live, wanted)


def _same(path: Path, wanted: Any, live: Any) -> bool:
    if wanted == live:
        return True
    if live is msgspec.UNSET:
        return wanted is None or wanted in ("", [], {})
    if not set(path[-2:-1]) & _AMOUNTS and path[-1:] != ("sizeLimit",):
        return False
    try:
        return parse(wanted) == parse(live)
    except ValueError:
        return False


def _named(value: Any) -> dict[str, Any] | None:
    """The items of a list by their names; None where they have none of their own."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return None
    for key in _NAMED_BY:
        found = {item[key]: item for item in value if key in item}
        if len(found) == len(value):
            return found
    return None
