"""Things that wait in groups: within a group first come, first served, and groups take turns.

Guarantee: with G groups waiting, a group's first is among the next G that are taken, however many
wait in the others. Every act takes the same time, however many wait; `first_group` takes longer
the more groups it passes over.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class FairQueue(Generic[K, V]):
    """Each key waits once, with a value beside it."""

    def __init__(self) -> None:
        self._groups: OrderedDict[Hashable, OrderedDict[K, V]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def holds(self, group: Hashable, key: K) -> bool:
        return key in self._groups.get(group, ())

    def put(self, group: Hashable, key: K, value: V) -> None:
        """At the end of its group; a group that was not waiting comes after all others."""
        waiting = self._groups.setdefault(group, OrderedDict())
        if key not in waiting:
            self._size += 1
        waiting[key] = value

    def remove(self, group: Hashable, key: K) -> V:
        waiting = self._groups[group]
        value = waiting.pop(key)
        self._size -= 1
        if not waiting:
            del self._groups[group]
        return value

    def first_group(self, may: Callable[[Hashable], bool]) -> Hashable | None:
        """The first group in turn that `may` be served; None: none of those that wait."""
        return next((group for group in self._groups if may(group)), None)

    def take(self, group: Hashable | None = None) -> tuple[K, V]:
        """The first of the group whose turn it is, or of `group`, which comes last then."""
        if group is None:
            group = next(iter(self._groups))
        waiting = self._groups.pop(group)
        found = waiting.popitem(last=False)
        self._size -= 1
        if waiting:
            self._groups[group] = waiting
        return found


class NestedFairQueue(Generic[K, V]):
    """Groups of groups: the outer ones take turns, and within each its inner ones do."""

    def __init__(self) -> None:
        self._outer: OrderedDict[Hashable, FairQueue[K, V]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._outer)

    def holds(self, outer: Hashable, inner: Hashable, key: K) -> bool:
        return outer in self._outer and self._outer[outer].holds(inner, key)

    def put(self, outer: Hashable, inner: Hashable, key: K, value: V) -> None:
        self._outer.setdefault(outer, FairQueue()).put(inner, key, value)

    def remove(self, outer: Hashable, inner: Hashable, key: K) -> V:
        value = self._outer[outer].remove(inner, key)
        if not self._outer[outer]:
            del self._outer[outer]
        return value

    def take(self) -> tuple[K, V]:
        outer, waiting = self._outer.popitem(last=False)
        found = waiting.take()
        if waiting:
            self._outer[outer] = waiting
        return found
