"""A job grows and shrinks on real nodes, and its program hears of it (C-14)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from tests.cluster import Kubectl, eventually
from tests.e2e.operator import mpijob, submit

# A program that is told to wait for a number of hosts, and then goes to each of them.
PROGRAM = r"""
visit() {
    until [ "$(/etc/mpi/discover_hosts.sh | wc -l)" -eq "$1" ]; do sleep 0.2; done
    for host in $(/etc/mpi/discover_hosts.sh); do
        echo "$1: $(ssh "$host" hostname </dev/null)"
    done
}
visit 2
visit 3
visit 1
"""
HEARD_WITHIN = 30
"""seconds from the change to the visit: pods are made, and the kubelet is told at once"""

pytestmark = pytest.mark.timeout(500, func_only=True)


def resize(kubectl: Kubectl, workers: int) -> None:
    change = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": workers}}}}
    kubectl("patch", "mpijob", "elastic", "--type=merge", f"--patch={json.dumps(change)}")


def test_a_program_follows_its_job_as_it_grows_and_shrinks(
    restricted_home: Kubectl, image: Callable[[str], str]
) -> None:
    command = ["sh", "-c", PROGRAM]
    job = submit(
        restricted_home, mpijob("elastic", image("mpi-openmpi"), command, workers=2, slots=1)
    )
    job.until("Running")
    eventually("two are visited", lambda: "2: elastic-worker-1" in job.log(), 60)
    before = {pod["metadata"]["uid"] for pod in job.pods()}
    began = time.monotonic()
    resize(restricted_home, 3)
    eventually("the third is visited", lambda: "3: elastic-worker-2" in job.log(), 120)
    heard = time.monotonic() - began
    assert before < {pod["metadata"]["uid"] for pod in job.pods()}
    resize(restricted_home, 1)
    job.until("Succeeded", 120)
    assert job.log().splitlines()[-1] == "1: elastic-worker-0"
    assert heard < HEARD_WITHIN, heard
