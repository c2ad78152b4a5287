"""What Kueue says of its queues, in our values."""

from __future__ import annotations

from typing import Any

import msgspec

from mpi_trainer.sdk.backends.backend import QueueResource, WaitingJob
from mpi_trainer.sdk.backends.cluster.queues import ClusterQueue, PendingList

GPU = "nvidia.com/gpu"


def flavor(name: str, **amounts: Any) -> dict[str, Any]:
    field = "total" if "total" in amounts else "nominalQuota"
    amount = amounts.get("total", amounts.get("nominal"))
    return {"name": name, "resources": [{"name": GPU, field: amount}]}


def test_a_cluster_queue_has_its_amounts_by_flavor() -> None:
    stored = {
        "metadata": {"name": "all"},
        "spec": {
            "resourceGroups": [
                {"flavors": [flavor("a100", nominal=8), flavor("h100", nominal="4")]}
            ]
        },
        "status": {"pendingWorkloads": 3, "flavorsUsage": [flavor("h100", total="2")]},
    }
    found = msgspec.convert(stored, ClusterQueue)
    assert [*found.resources()] == [
        QueueResource("a100", GPU, "8", "0"),
        QueueResource("h100", GPU, "4", "2"),
    ]
    assert found.status.pending_workloads == 3
    assert [*ClusterQueue().resources()] == []


def test_places_are_counted_from_one_and_are_those_of_jobs() -> None:
    """As the visibility API has them, counted from 0; a workload without an owner is left out."""
    owned = {"ownerReferences": [{"kind": "MPIJob", "name": "train", "uid": "u"}]}
    stored = {
        "items": [
            {
                "metadata": {"name": "mpijob-train", **owned},
                "priority": 5,
                "positionInClusterQueue": 3,
                "positionInLocalQueue": 0,
            },
            {"metadata": {"name": "other"}, "positionInLocalQueue": 1},
        ]
    }
    first, second = msgspec.convert(stored, PendingList).items
    assert first.place == WaitingJob("MPIJob", "train", 1, 4, 5)
    assert second.place is None
