"""An event loop whose clock jumps: tests of hours take no time, and never sleep."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

A = TypeVar("A")


class _Jumping(selectors.SelectSelector):
    """Nothing is waited for: when nothing is ready the time of the wait has passed."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("everything waits for ever")
            self.now += max(0.0, timeout)
        return ready


class FakeTime(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def stall(self, seconds: float) -> None:
        """As if something had blocked the loop for so long."""
        self._jumping.now += seconds


def run_in_fake_time(scenario: Coroutine[Any, Any, A]) -> A:
    """Run it in an event loop whose clock jumps."""
    with asyncio.Runner(loop_factory=FakeTime) as runner:
        return runner.run(scenario)


def now() -> float:
    return asyncio.get_running_loop().time()
