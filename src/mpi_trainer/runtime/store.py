"""A kind's objects as last seen, by key and by index.

Guarantees: a value is replaced, never changed; an older version of an object never replaces a newer
one while watching; a list is the truth, even if its versions are lower (a restored etcd).
`version` says how far the watch has come, so that one can tell whether an own write is in it.
The danger: what is here lags behind the server. Decide over it, and guard what you write by uid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, Literal

import msgspec

from mpi_trainer.runtime.partial import HasNames, Kept, Key, T, key_of, version_number

Outcome = Literal["changed", "known", "doubtful"]


class Change(msgspec.Struct, frozen=True):
    """`old` is None for a new object, `new` is None for one that is gone."""

    old: object
    new: object


def by_label(label: str) -> Callable[[Kept], Iterable[str]]:
    """Index by `namespace/value` of a label."""

    def index(value: Kept) -> Iterable[str]:
        found = getattr(value.metadata, "labels", {}).get(label)
        return () if found is None else (f"{value.metadata.namespace}/{found}",)

    return index


class Store(Generic[T]):
    """Filled by reflectors, one for all namespaces ("") or one for each of some; read by anyone."""

    def __init__(self, indexes: Mapping[str, Callable[[T], Iterable[str]]] | None = None) -> None:
        self._values: dict[Key, T] = {}
        self._uids: dict[str, Key] = {}
        self._index_of = dict(indexes or {})
        self._indexes: dict[str, dict[str, dict[Key, T]]] = {name: {} for name in self._index_of}
        self._versions: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._values.values()))

    def get(self, key: Key) -> T | None:
        return self._values.get(key)

    def holds(self, uid: str) -> bool:
        return uid in self._uids

    def by(self, index: str, value: str) -> tuple[T, ...]:
        """In the order of their names."""
        found = self._indexes[index].get(value)
        return tuple(found[key] for key in sorted(found)) if found else ()

    def count(self, index: str, value: str) -> int:
        """How many `by` would give."""
        return len(self._indexes[index].get(value, ()))

    def version(self, namespace: str = "") -> int:
        """How far the watch over this namespace has come; -1 before the first list."""
        return max(self._versions.get(namespace, -1), self._versions.get("", -1))

    # --- what reflectors do ------------------------------------------------------------------

    def advance(self, resource_version: str, scope: str = "") -> None:
        """The watch has come this far; it does not go back."""
        number = version_number(resource_version)
        self._versions[scope] = max(number, self._versions.get(scope, -1))

    def put(self, value: T, scope: str = "") -> tuple[Outcome, tuple[Change, ...]]:
        """A value from a watch.

        `doubtful` is one that comes late for an object that is not here: it may be one that was
        deleted since, so only a list can tell.
        """
        key, number = key_of(value), version_number(value.metadata.resource_version)
        late = 0 <= number < self._versions.get(scope, -1)
        self.advance(value.metadata.resource_version, scope)
        old = self._values.get(key)
        if old is None:
            return ("doubtful", ()) if late else ("changed", (self._set(key, value),))
        if 0 <= number <= version_number(old.metadata.resource_version):
            return "known", ()
        if old.metadata.uid != value.metadata.uid:
            return "changed", (self._drop(key), self._set(key, value))
        return "changed", (self._set(key, value),)

    def remove(self, value: T, scope: str = "") -> tuple[Change, ...]:
        """A deletion from a watch; one of an earlier object of that name changes nothing."""
        return self.discard(key_of(value), value.metadata, scope)

    def discard(self, key: Key, gone: HasNames, scope: str = "") -> tuple[Change, ...]:
        """As `remove`, of an object of which only the names could be read."""
        number = version_number(gone.resource_version)
        self.advance(gone.resource_version, scope)
        old = self._values.get(key)
        if old is None or old.metadata.uid != gone.uid:
            return ()
        if 0 <= number < version_number(old.metadata.resource_version):
            return ()
        return (self._drop(key),)

    def replace(
        self, values: Iterable[T], resource_version: str, scope: str = "", kept: Iterable[Key] = ()
    ) -> tuple[Change, ...]:
        """A whole list. Objects that it lacks are gone, except `kept`, which could not be read."""
        listed = {key_of(value): value for value in values}
        spared = set(kept)
        changes = [
            self._drop(key)
            for key in tuple(self._values)
            if key not in listed and key not in spared and scope in ("", key.namespace)
        ]
        for key, value in listed.items():
            old = self._values.get(key)
            if old is not None and old.metadata.uid != value.metadata.uid:
                changes.append(self._drop(key))
            elif old is not None and _same_version(old, value):
                continue
            changes.append(self._set(key, value))
        self._versions[scope] = version_number(resource_version)
        return tuple(changes)

    def _set(self, key: Key, value: T) -> Change:
        old = self._values.get(key)
        if old is not None:
            self._unindex(key, old)
        self._values[key] = value
        self._uids[value.metadata.uid] = key
        for name, index_of in self._index_of.items():
            for entry in index_of(value):
                self._indexes[name].setdefault(entry, {})[key] = value
        return Change(old, value)

    def _drop(self, key: Key) -> Change:
        old = self._values.pop(key)
        self._uids.pop(old.metadata.uid, None)
        self._unindex(key, old)
        return Change(old, None)

    def _unindex(self, key: Key, value: T) -> None:
        for name, index_of in self._index_of.items():
            for entry in index_of(value):
                found = self._indexes[name].get(entry, {})
                found.pop(key, None)
                if not found:
                    self._indexes[name].pop(entry, None)


def _same_version(one: Kept, other: Kept) -> bool:
    return one.metadata.resource_version == other.metadata.resource_version
