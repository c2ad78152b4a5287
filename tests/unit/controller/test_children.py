"""A name that an earlier job still has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mpi_trainer.controller.children import NameWait, Predecessor, name_taken_text

T0 = datetime(2026, 3, 1, tzinfo=UTC)


def test_it_is_asked_for_less_and_less_often_and_then_counts_as_taken() -> None:
    """S-13: it was asked for twice a second, for ever."""
    name, now, waits = NameWait(), T0, []
    while (wait := name.again(now, lambda: 0.5)) is not None:
        waits.append(wait)
        now += timedelta(seconds=wait)
    assert waits[:5] == [0.5, 1.0, 2.0, 4.0, 8.0]
    assert max(waits) == 30.0
    assert len(waits) < 20
    assert timedelta(minutes=5) <= now - T0 <= timedelta(minutes=6)


@pytest.mark.parametrize("leap", [timedelta(hours=1), timedelta(hours=-1)])
def test_time_in_which_nobody_asked_does_not_count(leap: timedelta) -> None:
    """S-13: a clock that is set, or a job that was suspended meanwhile, was a job that failed."""
    name = NameWait()
    assert name.again(T0) is not None
    now, waited = T0 + leap, timedelta()
    while (wait := name.again(now, lambda: 0.5)) is not None:
        now += timedelta(seconds=wait)
        waited += timedelta(seconds=wait)
    assert timedelta(minutes=4) <= waited <= timedelta(minutes=6)


def test_what_to_do_is_said() -> None:
    text = name_taken_text(Predecessor("Service pi of an earlier pi is still there"))
    assert text.startswith(
        "Service pi of an earlier pi is still there, though it has had 5 minutes"
    )
    assert "finalizers" in text
