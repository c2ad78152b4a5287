"""Whether what we see already contains what we wrote.

A watch lags behind a write. Deciding over the older picture would start a pod twice or count a
failure twice, so a key waits until the watch has passed each of its own writes.
Writes are kept by uid: those of a deleted object never hold up its successor of the same name.
The wait is bounded: `patience` seconds after the watch has last moved, and `at_most` in all, the
key goes on, and preconditions protect the rest. A watch that moves is only behind: to decide
without it then would cost a conflict for every key, when there is most to do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from mpi_trainer.runtime.partial import HasNames, version_number
from mpi_trainer.runtime.store import Store

K = TypeVar("K", bound=Hashable)
R = TypeVar("R", bound=Hashable)

GONE = -1


class _Write(NamedTuple):
    namespace: str
    version: int
    at: float


class Freshness(Generic[K, R]):
    """For keys `K` over stores of kinds `R`; writes of kinds that no store holds are ignored."""

    def __init__(
        self,
        stores: Mapping[R, Store[Any]],
        clock: Callable[[], float],
        *,
        patience: float = 10.0,
        at_most: float = 120.0,
    ) -> None:
        self._stores = dict(stores)
        self._clock = clock
        self._patience = patience
        self._at_most = at_most
        self._moved: dict[tuple[R, str], tuple[int, float]] = {}
        self._writes: dict[K, dict[tuple[R, str], _Write]] = {}
        self.gave_up = 0

    def wrote(self, key: K, kind: R, answer: HasNames) -> None:
        """`answer` is the metadata that the server returned."""
        number = version_number(answer.resource_version)
        if kind in self._stores and number > self._stores[kind].version(answer.namespace):
            self._note(key, kind, answer.uid, _Write(answer.namespace, number, self._clock()))

    def deleted(self, key: K, kind: R, uid: str, namespace: str = "") -> None:
        """The server said that the object is gone, or it was not there any more."""
        if kind in self._stores and self._stores[kind].holds(uid):
            self._note(key, kind, uid, _Write(namespace, GONE, self._clock()))

    def fresh(self, key: K) -> bool:
        """Whether the key may be decided upon now."""
        writes = self._writes.get(key)
        if not writes:
            return True
        now = self._clock()
        for (kind, uid), write in tuple(writes.items()):
            if self._seen(kind, uid, write):
                del writes[kind, uid]
            elif self._is_over(write.at, self._moved_at(kind, write.namespace), now):
                self.gave_up += 1
                del writes[kind, uid]
        if writes:
            return False
        del self._writes[key]
        return True

    def forget(self, key: K) -> None:
        self._writes.pop(key, None)

    def _note(self, key: K, kind: R, uid: str, write: _Write) -> None:
        self._writes.setdefault(key, {})[kind, uid] = write
        self._moved_at(kind, write.namespace)

    def _is_over(self, wrote: float, moved: float, now: float) -> bool:
        return now - wrote >= self._at_most or now - max(wrote, moved) >= self._patience

    def _moved_at(self, kind: R, namespace: str) -> float:
        """When the watch that should show a write last moved, as far as we looked."""
        version = self._stores[kind].version(namespace)
        before = self._moved.get((kind, namespace))
        if before is None or before[0] != version:
            self._moved[kind, namespace] = before = (version, self._clock())
        return before[1]

    def _seen(self, kind: R, uid: str, write: _Write) -> bool:
        store = self._stores[kind]
        if write.version == GONE:
            return not store.holds(uid)
        return store.version(write.namespace) >= write.version
