"""Failures wait longer; health is forgiven only when it lasts."""

from __future__ import annotations

from mpi_trainer.runtime.backoff import WATCHES, Backoff


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_watches_wait_from_eight_tenths_to_thirty_seconds_and_up_to_twice_that() -> None:
    low = Backoff(WATCHES, Clock(), chance=lambda: 0.0)
    assert [round(low.failed(), 1) for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30]
    high = Backoff(WATCHES, Clock(), chance=lambda: 1.0)
    assert round(high.failed(), 1) == 1.6


def test_a_short_recovery_does_not_start_over() -> None:
    clock = Clock()
    backoff = Backoff(WATCHES, clock, chance=lambda: 0.0)
    for _ in range(3):
        backoff.failed()
    backoff.healthy()
    clock.now = 119
    backoff.healthy()
    assert backoff.failed() == 6.4


def test_two_healthy_minutes_start_over() -> None:
    clock = Clock()
    backoff = Backoff(WATCHES, clock, chance=lambda: 0.0)
    for _ in range(3):
        backoff.failed()
    backoff.healthy()
    clock.now = 120
    assert backoff.failed() == 0.8


def test_a_thousand_failures_do_not_overflow() -> None:
    assert WATCHES.delay(100_000, lambda: 0.0) == 30
