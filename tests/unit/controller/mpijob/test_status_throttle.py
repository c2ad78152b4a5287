"""When the new status of an MPIJob is written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from mpi_trainer.api.kinds.conditions import Condition
from mpi_trainer.api.kinds.mpijob import MPIJobStatus, ReplicaStatus
from mpi_trainer.controller.mpijob import status_throttle
from mpi_trainer.controller.status_throttle import NOW, write_time

T0 = datetime(2026, 3, 1, 12, 0, 0, 700_000, tzinfo=UTC)


def some(active: int = 0, **fields: Any) -> MPIJobStatus:
    counts = {"Launcher": ReplicaStatus(), "Worker": ReplicaStatus(active=active)}
    return MPIJobStatus(replica_statuses=counts, last_reconcile_time=T0, **fields)


def done(kind: str = "Succeeded") -> tuple[Condition, ...]:
    return (Condition(type=kind, status="True"),)


def wait(
    old: MPIJobStatus,
    new: MPIJobStatus,
    now: datetime,
    first_seen: datetime = T0,
    writes: float = 0,
) -> timedelta | None:
    return status_throttle.wait(old, new, first_seen, now, write_time(writes))


def test_a_stamp_alone_is_no_reason_to_write() -> None:
    later = msgspec.structs.replace(some(2), last_reconcile_time=T0 + timedelta(hours=1))
    assert wait(some(2), later, T0) is None


def test_conditions_and_times_are_written_at_once() -> None:
    assert wait(some(), some(conditions=done("Running")), T0) == NOW
    assert wait(some(), some(start_time=T0), T0) == NOW


def test_counts_wait_until_ten_seconds_after_the_last_write() -> None:
    at = T0 + timedelta(seconds=4)
    assert wait(some(1), some(2), at) == timedelta(seconds=6)
    assert wait(some(1), some(2), T0 + timedelta(seconds=60)) == NOW


def test_a_clock_that_was_set_back_does_not_hold_counts_up() -> None:
    """They waited for as long as it was set back."""
    assert wait(some(1), some(2), T0 - timedelta(hours=1)) == NOW


def test_the_last_count_of_a_finished_job_does_not_wait() -> None:
    assert wait(some(2, conditions=done()), some(0, conditions=done()), T0) == NOW


def test_that_a_job_was_created_waits_a_moment_for_its_running() -> None:
    fresh, created = MPIJobStatus(), some(conditions=done("Created"), start_time=T0)
    by = T0 + timedelta(seconds=2)
    assert wait(fresh, created, T0, writes=32) == timedelta(seconds=2)
    assert wait(fresh, created, by + timedelta(seconds=1), writes=32) == NOW
    both = some(conditions=(*done("Created"), *done("Running")), start_time=T0)
    assert wait(fresh, both, T0, writes=32) == NOW


def test_beside_many_writes_the_moment_is_longer_but_never_above_ten_seconds() -> None:
    created = some(conditions=done("Created"), start_time=T0)
    for writes, seconds in ((0, 1), (64, 3), (1e6, 10)):
        assert wait(MPIJobStatus(), created, T0, writes=writes) == timedelta(seconds=seconds)


def test_beside_many_writes_counts_wait_longer_but_never_above_a_minute() -> None:
    """P-4: five hundred jobs that start together are not counted anew every ten seconds."""
    for writes, seconds in ((0, 10), (320, 40), (1e6, 60)):
        assert wait(some(1), some(2), T0, writes=writes) == timedelta(seconds=seconds)


def test_that_nothing_of_a_suspended_job_is_active_any_more_does_not_wait() -> None:
    """C-10: its quota is free, and others wait for it."""
    held = done("Suspended")
    before, later = some(2, conditions=held), T0 + timedelta(seconds=1)
    assert wait(before, some(0, conditions=held), later) == NOW
    assert wait(before, some(1, conditions=held), later) == timedelta(seconds=9)


def test_new_suspended_job_is_left_alone_for_a_moment() -> None:
    """U-3: a client that updated what it had just created got a conflict, 14 times of 15."""
    waiting = Condition(type="Running", status="False")
    new = some(conditions=(*done("Created"), *done("Suspended"), waiting))
    by = T0 + timedelta(seconds=1)
    assert wait(MPIJobStatus(), new, T0) == timedelta(seconds=1)
    assert wait(MPIJobStatus(), new, by) == NOW
    old = some(2, conditions=(*done("Created"), *done("Running")))
    assert wait(old, new, T0) == NOW, "its quota is free"
