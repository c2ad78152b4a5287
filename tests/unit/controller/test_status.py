"""A status on the wire, and when it is worth a write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from mpi_trainer.api.kinds.conditions import Condition
from mpi_trainer.api.kinds.mpijob import JobStatus, ReplicaStatus
from mpi_trainer.controller import status
from mpi_trainer.controller.status import Leisure

T0 = datetime(2026, 3, 1, 12, 0, 0, 700_000, tzinfo=UTC)
PROMPT = Leisure(T0)


def some(active: int = 0, **fields: Any) -> JobStatus:
    counts = {"Launcher": ReplicaStatus(), "Worker": ReplicaStatus(active=active)}
    return JobStatus(replica_statuses=counts, last_reconcile_time=T0, **fields)


def done(kind: str = "Succeeded") -> tuple[Condition, ...]:
    return (Condition(type=kind, status="True"),)


def test_a_stamp_alone_is_no_reason_to_write() -> None:
    later = msgspec.structs.replace(some(2), last_reconcile_time=T0 + timedelta(hours=1))
    assert status.wait(some(2), later, T0, PROMPT) is None


def test_news_are_written_at_once() -> None:
    assert status.wait(some(), some(conditions=done("Running")), T0, PROMPT) == status.NOW
    assert status.wait(some(), some(start_time=T0), T0, PROMPT) == status.NOW


def test_counts_wait_until_ten_seconds_after_the_last_write() -> None:
    at = T0 + timedelta(seconds=4)
    assert status.wait(some(1), some(2), at, PROMPT) == timedelta(seconds=6)
    assert status.wait(some(1), some(2), T0 + timedelta(seconds=60), PROMPT) == status.NOW


def test_a_clock_that_was_set_back_does_not_hold_counts_up() -> None:
    """They waited for as long as it was set back."""
    assert status.wait(some(1), some(2), T0 - timedelta(hours=1), PROMPT) == status.NOW


def test_the_last_count_of_a_finished_job_does_not_wait() -> None:
    assert (
        status.wait(some(2, conditions=done()), some(0, conditions=done()), T0, PROMPT)
        == status.NOW
    )


def test_a_patch_takes_away_what_is_no_longer_said() -> None:
    old = some(2, start_time=T0)
    body = status.patch(old, some(0), "7")
    assert body == {
        "metadata": {"resourceVersion": "7"},
        "status": {"startTime": None, "replicaStatuses": {"Worker": {"active": None}}},
    }


def test_times_are_whole_seconds() -> None:
    assert status.wire(some(start_time=T0))["startTime"] == "2026-03-01T12:00:00Z"


def test_a_strange_status_is_read_as_far_as_it_can_be() -> None:
    raw = b'{"conditions": null, "replicaStatuses": {"Worker": {"active": "two"}}, "startTime": 5}'
    assert status.read(raw, JobStatus).conditions == ()
    assert status.read(b"[]", JobStatus) == JobStatus()


def test_that_a_job_was_created_waits_a_moment_for_its_running() -> None:
    fresh, created = JobStatus(), some(conditions=done("Created"), start_time=T0)
    by = T0 + timedelta(seconds=2)
    assert status.wait(fresh, created, T0, Leisure(by)) == timedelta(seconds=2)
    assert status.wait(fresh, created, by + timedelta(seconds=1), Leisure(by)) == status.NOW
    both = some(conditions=(*done("Created"), *done("Running")), start_time=T0)
    assert status.wait(fresh, both, T0, Leisure(by)) == status.NOW


def test_beside_many_writes_the_moment_is_longer_but_never_above_ten_seconds() -> None:
    for writes, seconds in ((0, 1), (64, 3), (1e6, 10)):
        assert Leisure.beside(writes, T0).created_by == T0 + timedelta(seconds=seconds)


def test_beside_many_writes_counts_wait_longer_but_never_above_a_minute() -> None:
    """P-4: five hundred jobs that start together are not counted anew every ten seconds."""
    for writes, seconds in ((0, 10), (320, 20), (1e6, 60)):
        leisure = Leisure.beside(writes, T0)
        assert status.wait(some(1), some(2), T0, leisure) == timedelta(seconds=seconds)


def test_that_nothing_of_a_suspended_job_is_active_any_more_does_not_wait() -> None:
    """C-10: its quota is free, and others wait for it."""
    held = done("Suspended")
    before, later = some(2, conditions=held), T0 + timedelta(seconds=1)
    assert status.wait(before, some(0, conditions=held), later, PROMPT) == status.NOW
    assert status.wait(before, some(1, conditions=held), later, PROMPT) == timedelta(seconds=9)


def test_new_suspended_job_is_left_alone_for_a_moment() -> None:
    """U-3: a client that updated what it had just created got a conflict, 14 times of 15."""
    waiting = Condition(type="Running", status="False")
    new = some(conditions=(*done("Created"), *done("Suspended"), waiting))
    by = T0 + timedelta(seconds=1)
    assert status.wait(JobStatus(), new, T0, Leisure(by)) == timedelta(seconds=1)
    assert status.wait(JobStatus(), new, by, Leisure(by)) == status.NOW
    old = some(2, conditions=(*done("Created"), *done("Running")))
    assert status.wait(old, new, T0, Leisure(by)) == status.NOW, "its quota is free"
