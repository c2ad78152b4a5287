"""Progress out of log lines: how far a job says it is, and when it will be done.

`Tracker` folds lines, with the time of each, into the newest `Progress`. Several ranks may say
the same thing a little apart; the furthest counts, and one that lags does not turn time back.
The end is expected from the pace of the last advances, so a slow start is soon forgotten.
Guarantee: never raises, whatever the line. Danger: it believes what the program prints.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from mpi_trainer.diagnose.readings import Reading

PACE_OVER = 16
MOST_METRICS = 64
A_CENTURY = 100 * 365 * 24 * 3600.0
"""seconds; no end that is further away is told"""
# A job that counts epochs and prints bars within them is measured by its epochs.
_WEIGHT = {"epoch": 3, "step": 2, "iteration": 2, "batch": 2}


class Progress(msgspec.Struct, frozen=True):
    """How far a job says it is. `metrics` are the last values it printed, such as loss."""

    step: float | None = None
    total: float | None = None
    unit: str = ""
    eta_seconds: float | None = None
    metrics: Mapping[str, float] = {}
    at: float = 0.0

    @property
    def fraction(self) -> float | None:
        if self.step is None or not self.total:
            return None
        return min(max(self.step / self.total, 0.0), 1.0)


class Tracker:
    """Holds one attempt's progress; a new attempt begins with a new one."""

    def __init__(self) -> None:
        # Only whoever reads logs needs the patterns; listing jobs must not pay for them.
        from mpi_trainer.diagnose.readings import read

        self._read = read
        self._progress: Progress | None = None
        self._advances: deque[tuple[float, float]] = deque(maxlen=PACE_OVER)

    @property
    def progress(self) -> Progress | None:
        return self._progress

    def see(self, at: float, text: str) -> bool:
        """Takes a line that was written at `at` seconds; whether the progress changed by it."""
        reading = self._read(text)
        if reading is None:
            return False
        before = self._progress
        self._progress = self._after(at, reading, before or Progress())
        return self._progress != before

    def _after(self, at: float, reading: Reading, before: Progress) -> Progress:
        step, total, unit = _counted(reading, before)
        metrics = before.metrics
        if reading.metrics:
            metrics = dict([*{**metrics, **reading.metrics}.items()][-MOST_METRICS:])
        same = (unit, total) == (before.unit, before.total)
        if not same and _weight(unit, total) < _weight(before.unit, before.total):
            return msgspec.structs.replace(before, metrics=metrics, at=at)
        if step is None:
            step = before.step if same else None
            return Progress(step, total, unit, before.eta_seconds if same else None, metrics, at)
        if same and before.step is not None and _lags(step, before.step, total):
            return msgspec.structs.replace(before, metrics=metrics, at=at)
        if not same or (before.step is not None and step < before.step):
            self._advances.clear()
        self._advance(at, step)
        return Progress(step, total, unit, self._eta(step, total), metrics, at)

    def _advance(self, at: float, step: float) -> None:
        if self._advances and at < self._advances[-1][0]:
            self._advances.clear()  # the clock was set back
        if not self._advances or step > self._advances[-1][1]:
            self._advances.append((at, step))

    def _eta(self, step: float, total: float | None) -> float | None:
        if total is None:
            return None
        if step >= total:
            return 0.0
        (began, first), (now, last) = self._advances[0], self._advances[-1]
        if now <= began or last <= first:
            return None
        left = (total - step) * (now - began) / (last - first)
        return left if left <= A_CENTURY else None


def _counted(reading: Reading, before: Progress) -> tuple[float | None, float | None, str]:
    """Step, total and unit of the whole job, as far as the line and what came before say it."""
    step, total, unit = reading.step, reading.total, reading.unit
    if step is None and total is None:
        return before.step, before.total, before.unit
    if total is None and unit == before.unit and (step or 0) <= (before.total or 0):
        total = before.total
    if reading.within is None or step is None:
        return step, total, unit
    if total is None:
        # One bar for each epoch and nobody said how many: all there is to see is this bar.
        return reading.within * 100, 100.0, f"{unit} {step:g}"
    return max(step - 1, 0.0) + reading.within, total, unit


def _weight(unit: str, total: float | None) -> int:
    return 0 if total is None else _WEIGHT.get(unit, 1)


def _lags(step: float, newest: float, total: float | None) -> bool:
    """Whether a smaller step is another rank's that comes a little later, not a new beginning."""
    return step < newest and newest - step <= max(1.0, (total or newest) / 10)
