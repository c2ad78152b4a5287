"""How late the event loop is: the one number that tells a healthy process from a stuck one.

Everything shares the loop, lease renewals too, so a loop that is late by seconds, again and again,
is as bad as a dead process, while every task in it believes that all is well. Shown is the worst
of the last minute, so that a pause between two scrapes is not missed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, NoReturn

from mpi_trainer.runtime.metrics import Metrics

PERIOD: Final = 0.1
"""seconds: a pause that is longer is seen, less at most this much"""
SECOND: Final = 1.0
SAMPLES: Final = 3
SHOWN: Final = 60


class LoopLag:
    """The worst lag of each second, for a minute."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._seconds: deque[float] = deque(maxlen=SHOWN)

    async def run(self) -> NoReturn:
        clock = asyncio.get_running_loop().time
        began, worst = clock(), 0.0
        while True:
            asked = clock()
            await asyncio.sleep(PERIOD)
            now = clock()
            worst = max(worst, now - asked - PERIOD)
            if now - began >= SECOND:
                self._seconds.append(worst)
                self._metrics.loop_lag.set(max(self._seconds))
                began, worst = now, 0.0

    @property
    def sustained(self) -> float:
        """The least of the last few seconds' worst: one pause alone is no illness."""
        recent = list(self._seconds)[-SAMPLES:]
        return min(recent) if len(recent) == SAMPLES else 0.0
