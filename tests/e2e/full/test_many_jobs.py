"""Twenty real jobs at once on three nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cluster import Kubectl
from tests.e2e.operator import Running, mpijob

JOBS = 20
PROGRAM = """\
import platform
from mpi4py import MPI
world = MPI.COMM_WORLD
print(f"{platform.node()} {world.allreduce(1)}", flush=True)
"""


@pytest.mark.timeout(900, func_only=True)
def test_twenty_jobs_at_once_all_succeed_on_their_own_workers(
    restricted_home: Kubectl, image: Callable[[str], str]
) -> None:
    """API-6, Shows 6."""
    reference = image("mpi-openmpi")
    command = ["mpirun", "--bind-to", "none", "-n", "2", "python3", "-c", PROGRAM]
    many = [mpijob(f"many-{n}", reference, command, slots=1) for n in range(JOBS)]
    restricted_home.apply(*many)
    for job in (Running(restricted_home, one["metadata"]["name"]) for one in many):
        job.until("Succeeded", 600)
        workers = [f"{job.name}-worker-{index} 2" for index in range(2)]
        assert sorted(job.said("worker")) == workers
        (launcher,) = job.pods("launcher")
        assert launcher["metadata"]["annotations"]["mpi-trainer.opendatahub.io/attempt"] == "1"
