"""What a program prints of itself over time, such as loss, as series of bounded length. Pure.

Each value belongs to the rank or the pod that printed it. A series keeps at most `MOST_POINTS`:
where more come, every second one is dropped and from then on only every second is taken, so that
the whole time stays in sight. Danger: values are what the program prints.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import msgspec

from mpi_trainer.diagnose.readings import read

MOST_POINTS: Final = 240
MOST_SERIES: Final = 128
Point = tuple[float, float]


class Series(msgspec.Struct, frozen=True):
    """Points are epoch seconds and values, in the order of their coming."""

    name: str
    pod: str
    rank: int | None
    points: tuple[Point, ...]


class Thinned:
    """Points of one series; never more than twice `MOST_POINTS` are held."""

    def __init__(self) -> None:
        self._points: list[Point] = []
        self._every = 1
        self._skipped = 0
        self._last: Point | None = None

    def add(self, at: float, value: float) -> None:
        self._last = (at, value)
        self._skipped += 1
        if self._skipped < self._every:
            return
        self._skipped = 0
        self._points.append((at, value))
        if len(self._points) >= 2 * MOST_POINTS:
            self._points = self._points[1::2]
            self._every *= 2

    def points(self) -> tuple[Point, ...]:
        """The newest value is always one of them."""
        found = self._points
        if self._last and (not found or found[-1] != self._last):
            found = [*found, self._last]
        step = math.ceil(len(found) / MOST_POINTS) or 1
        return tuple(reversed(found[::-1][::step]))


class Recorder:
    """Folds lines into series. `dropped` counts values of series beyond `MOST_SERIES`."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, int | None], Thinned] = {}
        self.dropped = 0

    def see(self, at: float, text: str, pod: str, rank: int | None) -> None:
        reading = read(text)
        if reading is None:
            return
        metrics: Mapping[str, float] = reading.metrics
        if reading.step is not None:
            metrics = {reading.unit or "step": reading.step, **metrics}
        for name, value in metrics.items():
            if not math.isfinite(value):
                continue
            key = (name, pod, rank)
            if key not in self._found and len(self._found) >= MOST_SERIES:
                self.dropped += 1
                continue
            self._found.setdefault(key, Thinned()).add(at, value)

    def series(self) -> tuple[Series, ...]:
        return tuple(Series(*key, points=one.points()) for key, one in self._found.items())
