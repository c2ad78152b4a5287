"""Who counts as a live public MPI operator."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from mpi_trainer.controller.other_controllers import Deployment, holds, serves
from mpi_trainer.runtime.leases import Lease

NOW = datetime(2026, 3, 1, 12, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("holder", "renewed", "live"),
    [
        ("mpi-operator-7d9f_uuid", "2026-03-01T12:00:50.000000Z", True),
        ("mpi-operator-7d9f_uuid", "2026-03-01T11:30:00.000000Z", False),
        ("host_mpi-trainer_abc", "2026-03-01T12:00:59.000000Z", False),
        ("", "2026-03-01T12:00:59.000000Z", False),
        ("mpi-operator-7d9f_uuid", "nonsense", False),
    ],
    ids=["fresh", "old", "our own", "released", "garbled"],
)
def test_a_lease_speaks_for_its_holder(holder: str, renewed: str, live: bool) -> None:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}
    lease = msgspec.convert({"metadata": {}, "spec": spec}, Lease)
    assert holds(lease, NOW) is live


@pytest.mark.parametrize(
    ("image", "ready", "live"),
    [
        ("mpioperator/mpi-operator:0.8.2", 1, True),
        ("mpioperator/mpi-operator:0.8.2", 0, False),
        ("quay.io/x/mpi-trainer:0.1", 2, False),
    ],
)
def test_a_deployment_with_pods_of_another_image_is_theirs(
    image: str, ready: int, live: bool
) -> None:
    template = {"spec": {"containers": [{"image": image}]}}
    found = {"spec": {"template": template}, "status": {"readyReplicas": ready}}
    assert serves(msgspec.convert(found, Deployment)) is live
