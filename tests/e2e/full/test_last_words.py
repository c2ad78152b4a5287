"""What failed stays readable on real nodes (W-7): whatever took the pods away, `describe` and
`logs` still show the cause and the last words of every attempt. The jobs run side by side."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.api.odh import Odh
from tests.api.running import Controller
from tests.cluster import Kubectl, eventually, restricted
from tests.e2e.manifests import Object
from tests.e2e.operator import Running, mpijob, submit
from tools.cluster.spec import Spec

PRINTS = """\
import time
from mpi4py import MPI
world = MPI.COMM_WORLD
for step in range(100000):
    print("rank", world.rank, "step", step, "password=" + "hunter" * 2, flush=True)
    time.sleep(0.2)
"""
GROWS = """\
import time
from mpi4py import MPI
world = MPI.COMM_WORLD
print("rank", world.rank, "step 0", flush=True)
world.Barrier()
hold = [bytearray(8 << 20) for _ in range(1000) if world.rank == 1]
world.Barrier()
"""

LONGEST = "n" * 54

pytestmark = pytest.mark.timeout(500, func_only=True)
Image = Callable[[str], str]


@pytest.fixture(scope="module")
def home(operator: Controller, cluster: Spec) -> Iterator[Kubectl]:
    kubectl = Kubectl(cluster, f"test-words-{secrets.token_hex(4)}")
    kubectl.apply(restricted(kubectl.namespace))
    yield kubectl
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


@pytest.fixture(scope="module")
def odh(home: Kubectl, cluster: Spec) -> Odh:
    return Odh(cluster.kubeconfig, home.namespace)


@pytest.fixture(scope="module")
def jobs(home: Kubectl, image: Image) -> dict[str, Running]:
    def made(name: str, program: str = PRINTS, **changes: Any) -> Object:
        command = ["mpirun", "--bind-to", "none", "-n", "2", "python3", "-c", program]
        return mpijob(name, image("mpi-openmpi"), command, slots=1, **changes)

    small = {"resources": {"limits": {"memory": "192Mi"}, "requests": {"memory": "64Mi"}}}
    every = [
        made("worker"),
        made("launcher"),
        made("twice", policy={"backoffLimit": 1}),
        made("late", policy={"activeDeadlineSeconds": 150, "cleanPodPolicy": "All"}),
        made("drained"),
        made("oom", GROWS, container=small),
    ]
    hosts = ["mpirun", "--bind-to", "none", "-n", "2", "hostname"]
    every.append(mpijob(LONGEST, image("mpi-openmpi"), hosts, slots=1))
    return {job["metadata"]["name"]: submit(home, job) for job in every}


def prints(odh: Odh, job: Running) -> None:
    job.until("Running", 300)
    eventually("it prints", lambda: "step 3" in odh("mpijob", "logs", job.name).stdout, 120)


def told(odh: Odh, name: str, *attempts: int) -> str:
    """The job's page, on which every attempt has its last words, as `logs` has them."""
    page = odh("mpijob", "describe", name).stdout
    for attempt in attempts:
        said = odh("mpijob", "logs", name, "--attempt", str(attempt)).stdout
        assert "rank 1 step" in said, (said, page)
        assert f"Last words of attempt {attempt} (" in page, page
    assert "hunterhunter" not in page
    assert "lines are gone" not in page
    return page


def test_longest_name_crashes_no_mpi(jobs: dict[str, Running]) -> None:
    """From 48 letters on Open MPI 4 smashed its stack."""
    job = jobs[LONGEST]
    job.until("Succeeded", 300)
    assert sorted(job.said("worker")) == [f"{LONGEST}-worker-0", f"{LONGEST}-worker-1"]


def test_deleted_worker(odh: Odh, jobs: dict[str, Running]) -> None:
    job = jobs["worker"]
    prints(odh, job)
    job.kubectl("delete", "pod", "worker-worker-1", "--wait=false")
    failed = job.until("Failed", 120)
    assert "worker-worker-1" in failed["message"]
    assert "worker-worker-1 was deleted" in told(odh, "worker", 1)


@pytest.mark.parametrize("force", [False, True])
def test_deleted_launcher(
    odh: Odh, jobs: dict[str, Running], home: Kubectl, image: Image, force: bool
) -> None:
    job = jobs["launcher"]
    if force:
        command = ["mpirun", "--bind-to", "none", "-n", "2", "python3", "-c", PRINTS]
        job = submit(home, mpijob("forced", image("mpi-openmpi"), command, slots=1))
    prints(odh, job)
    (pod,) = job.pods("launcher")
    how = ("--force", "--grace-period=0") if force else ()
    job.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false", *how)
    failed = job.until("Failed", 120)
    assert "deleted" in failed["message"]
    eventually("its pod is gone", lambda: not job.pods("launcher"), 120)
    told(odh, job.name, 1)


def test_attempts_that_failed_are_told_apart(odh: Odh, jobs: dict[str, Running]) -> None:
    job = jobs["twice"]
    prints(odh, job)
    job.kubectl("delete", "pod", "twice-worker-0", "--wait=false")
    job.until("Restarting", 120)
    job.until("Running", 240)
    eventually(
        "the second prints",
        lambda: "step 3" in odh("mpijob", "logs", "twice", "--attempt", "2").stdout,
        120,
    )
    both = odh("mpijob", "logs", "twice")
    assert "attempt 1 of 2: its pods are gone; its last lines were kept" in both.stderr
    assert "attempt 2 of 2: attempt 1 failed: Worker twice-worker-0 was deleted" in both.stderr
    told(odh, "twice", 1)
    (pod,) = (p for p in job.pods("launcher") if "deletionTimestamp" not in p["metadata"])
    job.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false")
    job.until("Failed", 120)
    told(odh, "twice", 1, 2)


def test_deadline(odh: Odh, jobs: dict[str, Running]) -> None:
    job = jobs["late"]
    failed = job.until("Failed", 300)
    assert failed["reason"] == "DeadlineExceeded"
    eventually("no pod is left", lambda: not job.pods(), 120)
    assert "DeadlineExceeded" in told(odh, "late", 1)


def test_out_of_memory(odh: Odh, jobs: dict[str, Running]) -> None:
    job = jobs["oom"]
    failed = job.until("Failed", 240)
    assert "OOM" in failed["message"] or "memory" in failed["message"], failed
    page = told(odh, "oom", 1)
    row = next(line for line in page.splitlines() if line.strip().startswith("1 "))
    assert "oom-worker-1" in row
    assert job.pods("launcher") and len(job.pods("worker")) == 2, "cleanPodPolicy None keeps them"


def test_drained_node(odh: Odh, jobs: dict[str, Running]) -> None:
    job = jobs["drained"]
    prints(odh, job)
    (launcher,) = job.pods("launcher")
    node = launcher["spec"]["nodeName"]
    only = "--pod-selector=training.kubeflow.org/job-name=drained"
    drain = ("drain", node, only, "--force", "--delete-emptydir-data", "--timeout=100s")
    try:
        job.kubectl(*drain)
        failed = job.until("Failed", 120)
    finally:
        job.kubectl("uncordon", node)
    assert "drained-" in failed["message"]
    told(odh, "drained", 1)
