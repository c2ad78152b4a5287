"""How many calls one caller may make: so many at once, then so many a second. Pure, but for what
it remembers."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import msgspec

MOST_CALLERS: Final = 10_000


class Rate(msgspec.Struct, frozen=True):
    at_once: int = 200
    per_second: float = 50.0


class RateLimit:
    """A bucket for each caller, filled over time. Who was not seen for longest is forgotten, with
    a bucket that is full by then or nearly so."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, caller: str, now: float) -> float:
        """Takes one call; 0, or the seconds until there is one to take."""
        left, at = self._left.pop(caller, (float(self._rate.at_once), now))
        left = min(self._rate.at_once, left + (now - at) * self._rate.per_second)
        allowed = left >= 1
        self._left[caller] = (left - 1 if allowed else left, now)
        if len(self._left) > MOST_CALLERS:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self._rate.per_second
