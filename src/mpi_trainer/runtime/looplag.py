"""How late the event loop is: the one number that tells a healthy process from a stuck one.

Everything shares the loop, lease renewals too, so a loop that is late by seconds, again and again,
is as bad as a dead process, while every task in it believes that all is well.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NoReturn

from mpi_trainer.runtime.metrics import Metrics

PERIOD = 1.0
SAMPLES = 3


class LoopLag:
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._recent: deque[float] = deque(maxlen=SAMPLES)

    async def run(self) -> NoReturn:
        clock = asyncio.get_running_loop().time
        while True:
            asked = clock()
            await asyncio.sleep(PERIOD)
            lag = max(0.0, clock() - asked - PERIOD)
            self._recent.append(lag)
            self._metrics.loop_lag.set(lag)

    @property
    def sustained(self) -> float:
        """The least lag of the last few samples: one pause alone is no illness."""
        return min(self._recent) if len(self._recent) == SAMPLES else 0.0
