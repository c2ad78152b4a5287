"""Keys that wait for a pass, each at most once.

Guarantees: a key added many times is handed out once; a key that is being worked on is not handed
to a second worker, and one added meanwhile comes again after `done`; urgent keys go first, but
never starve the rest; among urgent ones, as among the rest, namespaces take turns, so that a flood
in one never keeps another's waiting; a namespace has no more keys in work than there are `places`
left, so that however long its passes take, another's key finds one. A key is planned once: for the
earliest time and with the higher urgency of all that was asked. An earlier pass therefore replaces
a later one, and each pass must say when the next is due.
Events use `add`; only failures use `retry`, which waits longer each time.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections import Counter, deque
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, Protocol, TypeVar

from mpi_trainer.runtime.backoff import KEYS, Chance, Curve
from mpi_trainer.runtime.fair_queue import FairQueue

K = TypeVar("K", bound=Hashable)

PATIENCE = 10
"""After so many urgent keys in a row one of the others has its turn."""


class Closed(Exception):
    """The queue hands out nothing more; its worker should end."""


class Observer(Protocol):
    """Hears what happens to keys, for metrics. Times are in seconds."""

    def added(self) -> None: ...
    def started(self, waited: float) -> None: ...
    def finished(self, worked: float) -> None: ...
    def retried(self) -> None: ...


class _Later(NamedTuple):
    due: float
    order: int
    urgent: bool


def _namespace(key: Hashable) -> Hashable:
    return getattr(key, "namespace", "")


class WorkQueue(Generic[K]):
    """For one event loop; not for threads. `group` tells whose turn a key takes; `places` is how
    many keys are worked on at once, None where nobody has said so."""

    places: int | None = None

    def __init__(
        self,
        *,
        curve: Curve = KEYS,
        observer: Observer | None = None,
        chance: Chance = random.random,
        group: Callable[[K], Hashable] = _namespace,
    ) -> None:
        self._curve = curve
        self._observer = observer
        self._chance = chance
        self._group = group
        self._urgent: FairQueue[K, float] = FairQueue()
        self._calm: FairQueue[K, float] = FairQueue()
        self._working: dict[K, tuple[float, bool]] = {}
        self._held: Counter[Hashable] = Counter()
        self._dirty: dict[K, bool] = {}
        self._later: dict[K, _Later] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._order = 0
        self._timer: asyncio.TimerHandle | None = None
        self._failures: dict[K, int] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._urgent_in_a_row = 0
        self._closed = False

    # --- adding keys -------------------------------------------------------------------------

    def add(self, key: K, urgent: bool = True) -> None:
        """As soon as a worker is free."""
        if self._closed:
            return
        later = self._later.pop(key, None)
        urgent = urgent or (later is not None and later.urgent)
        if key in self._working:
            if key not in self._dirty and self._observer:
                self._observer.added()
            self._dirty[key] = self._dirty.get(key, False) or urgent
            return
        group = self._group(key)
        if self._urgent.holds(group, key):
            return
        if self._calm.holds(group, key):
            if urgent:
                self._urgent.put(group, key, self._calm.remove(group, key))
            return
        (self._urgent if urgent else self._calm).put(group, key, self._now())
        if self._observer:
            self._observer.added()
        self._wake()

    def add_after(self, key: K, seconds: float, urgent: bool = True) -> None:
        """Not before so many seconds, unless something else asks for it sooner."""
        if seconds <= 0:
            self.add(key, urgent)
            return
        if self._closed or key in self._dirty or self._waits(key):
            return
        due = self._now() + seconds
        planned = self._later.get(key)
        if planned is not None and planned.due <= due:
            self._later[key] = planned._replace(urgent=urgent or planned.urgent)
            return
        self._order += 1
        urgent = urgent or (planned is not None and planned.urgent)
        self._later[key] = _Later(due, self._order, urgent)
        heapq.heappush(self._heap, (due, self._order, key))
        self._set_timer()

    def retry(self, key: K, at_least: float = 0.0) -> float:
        """After a failure; returns the seconds that it will wait."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        seconds = max(self._curve.delay(failures, self._chance), at_least)
        if self._observer:
            self._observer.retried()
        self.add_after(key, seconds, self._working.get(key, (0.0, True))[1])
        return seconds

    def forget(self, key: K) -> None:
        """It went well: the next failure waits as short as the first."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    # --- working on keys ---------------------------------------------------------------------

    async def get(self) -> K:
        """The next key, to be given back by `done`; raises `Closed` at the end."""
        while not self._closed and (found := self._found()) is None:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except BaseException:
                waiter.cancel()
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
                elif self._urgent or self._calm:
                    self._wake()  # this waiter was woken for a key that another must take now
                raise
        if self._closed or found is None:
            raise Closed
        return self._take(*found)

    def done(self, key: K) -> None:
        started, _ = self._working.pop(key)
        group = self._group(key)
        self._held[group] -= 1
        if not self._held[group]:
            del self._held[group]
        if self._observer:
            self._observer.finished(self._now() - started)
        urgent = self._dirty.pop(key, None)
        if self._closed:
            return
        if urgent is not None:
            (self._urgent if urgent else self._calm).put(group, key, self._now())
        if self._urgent or self._calm:
            self._wake()  # of those that waited for a place another may have one now

    def close(self) -> None:
        """Nothing more is handed out; what waits is dropped, what is worked on may finish."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    # --- what metrics read -------------------------------------------------------------------

    def depth(self, urgent: bool) -> int:
        return len(self._urgent if urgent else self._calm)

    def delayed(self) -> int:
        return len(self._later)

    def ages(self) -> list[float]:
        """How long each key in work has been worked on."""
        now = self._now() if self._working else 0.0
        return [now - started for started, _ in self._working.values()]

    # --- inside ------------------------------------------------------------------------------

    def _found(self) -> tuple[bool, Hashable] | None:
        """Whether a calm key is next, and whose; None: no key may be worked on now."""
        calm_first = bool(self._calm) and self._urgent_in_a_row >= PATIENCE
        for calm in (calm_first, not calm_first):
            waiting = self._calm if calm else self._urgent
            group = waiting.first_group(self._has_room)
            if group is not None:
                return calm, group
        return None

    def _has_room(self, group: Hashable) -> bool:
        return self.places is None or self._held[group] < self.places - len(self._working)

    def _take(self, calm: bool, group: Hashable) -> K:
        self._urgent_in_a_row = 0 if calm or not self._calm else self._urgent_in_a_row + 1
        key, added = (self._calm if calm else self._urgent).take(group)
        now = self._now()
        self._working[key] = (now, not calm)
        self._held[group] += 1
        if self._observer:
            self._observer.started(now - added)
        return key

    def _waits(self, key: K) -> bool:
        group = self._group(key)
        return self._urgent.holds(group, key) or self._calm.holds(group, key)

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _set_timer(self) -> None:
        if len(self._heap) > 64 + 2 * len(self._later):
            # Superseded entries would otherwise stay until their time, which may be days away.
            self._heap = [entry for entry in self._heap if self._is_due(entry)]
            heapq.heapify(self._heap)
        while self._heap and not self._is_due(self._heap[0]):
            heapq.heappop(self._heap)
        if not self._heap or self._closed:
            return
        if self._timer is not None:
            if self._timer.when() <= self._heap[0][0]:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(self._heap[0][0], self._add_due)

    def _is_due(self, entry: tuple[float, int, K]) -> bool:
        """Whether it is still the time for which the key is planned."""
        planned = self._later.get(entry[2])
        return planned is not None and planned.order == entry[1]

    def _add_due(self) -> None:
        self._timer = None
        now = self._now()
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            if self._is_due(entry):
                self.add(entry[2], self._later[entry[2]].urgent)
        self._set_timer()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
