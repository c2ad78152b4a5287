"""How long to wait before trying again: longer after each failure, never in step with others.

`delay` is the curve alone; `Backoff` remembers failures and forgives them after a healthy while.
Jitter is part of the contract: a thousand clients that failed together must not return together.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

Chance = Callable[[], float]
"""A number in [0, 1), as `random.random` gives."""


class Curve(msgspec.Struct, frozen=True):
    """`first · factor^n`, at most `cap`; then changed by up to `spread` of itself.

    `spread` 1.0 means up to twice as long (`both_ways` False), or 0.1 ten per cent either way.
    """

    first: float
    cap: float
    factor: float = 2.0
    spread: float = 1.0
    both_ways: bool = False

    def delay(self, failures: int, chance: Chance = random.random) -> float:
        """After `failures` earlier ones; 0 is the first."""
        steps = min(failures, 64)  # beyond it a float may overflow, and every cap is long reached
        plain = min(self.first * self.factor**steps, self.cap)
        swing = chance() * 2 - 1 if self.both_ways else chance()
        return plain * (1 + self.spread * swing)


WATCHES = Curve(first=0.8, cap=30.0)
KEYS = Curve(first=0.005, cap=300.0, spread=0.1, both_ways=True)


class Backoff:
    """Delays of one thing that fails; a healthy time of `forgive` seconds starts it anew."""

    def __init__(
        self,
        curve: Curve,
        clock: Callable[[], float],
        *,
        forgive: float = 120.0,
        chance: Chance = random.random,
    ) -> None:
        self._curve = curve
        self._clock = clock
        self._forgive = forgive
        self._chance = chance
        self._failures = 0
        self._well_since: float | None = None

    def healthy(self) -> None:
        """It works now; what failed before is forgiven only if this lasts."""
        if self._well_since is None:
            self._well_since = self._clock()

    def failed(self) -> float:
        """The seconds to wait now."""
        lasted = 0.0 if self._well_since is None else self._clock() - self._well_since
        if lasted >= self._forgive:
            self._failures = 0
        self._well_since = None
        delay = self._curve.delay(self._failures, self._chance)
        self._failures += 1
        return delay
