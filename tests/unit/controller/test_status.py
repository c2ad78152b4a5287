"""A status as it is stored: read leniently, written as a merge patch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from mpi_trainer.api.kinds.mpijob import MPIJobStatus, ReplicaStatus
from mpi_trainer.controller import status

T0 = datetime(2026, 3, 1, 12, 0, 0, 700_000, tzinfo=UTC)


def some(active: int = 0, **fields: Any) -> MPIJobStatus:
    counts = {"Launcher": ReplicaStatus(), "Worker": ReplicaStatus(active=active)}
    return MPIJobStatus(replica_statuses=counts, last_reconcile_time=T0, **fields)


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
    assert status.read(raw, MPIJobStatus).conditions == ()
    assert status.read(b"[]", MPIJobStatus) == MPIJobStatus()
