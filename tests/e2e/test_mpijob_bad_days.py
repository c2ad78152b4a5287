"""What a user sees when a job goes wrong on real nodes. The jobs run side by side."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pytest

from mpi_trainer.api.kinds.annotations import bound
from mpi_trainer.decide import history
from tests.cluster import Kubectl, eventually
from tests.e2e.operator import Running, mpijob, submit, waiting_job

EXITS = "mpirun -n 2 true; echo no licence >&2; exit 7"
RAISES = """\
from mpi4py import MPI
world = MPI.COMM_WORLD
world.Barrier()
if world.rank == 1:
    raise ValueError("no such column: price")
world.Barrier()
"""

# Rank 1 does not come to the barrier.
HANGS = """\
import time
from mpi4py import MPI
world = MPI.COMM_WORLD
if world.rank == 1:
    time.sleep(3600)
world.Barrier()
"""
KEPT = 'printf %s "$0" >/tmp/hangs.py && exec python3 /tmp/hangs.py'

pytestmark = pytest.mark.timeout(400, func_only=True)
Image = Callable[[str], str]


@pytest.fixture(scope="module")
def jobs(restricted_home: Kubectl, image: Image) -> dict[str, Running]:
    reference = image("mpi-openmpi")
    run = ["mpirun", "--bind-to", "none", "-n", "2", "python3", "-c"]
    huge = {"resources": {"requests": {"cpu": "1000"}}}
    made = [
        mpijob("exits", reference, ["sh", "-c", EXITS], slots=1),
        mpijob("raises", reference, [*run, RAISES], slots=1),
        mpijob(
            "huge",
            reference,
            ["mpirun", "true"],
            container=huge,
            policy={"schedulingPolicy": {"scheduleTimeoutSeconds": 45}},
        ),
        mpijob(
            "hangs",
            reference,
            [*run[:-2], "sh", "-c", KEPT, HANGS],
            slots=1,
            metadata={"annotations": {bound("suspect"): "5"}},
        ),
        waiting_job("killed", reference, policy={"backoffLimit": 1}),
        waiting_job("spent", reference, policy={"backoffLimit": 0}),
    ]
    return {job["metadata"]["name"]: submit(restricted_home, job) for job in made}


def test_a_job_that_fits_nowhere_says_so(jobs: dict[str, Running]) -> None:
    """AC-16, SC-012: in the scheduler's words."""
    job = jobs["huge"]
    eventually("it says what is missing", lambda: "too little cpu" in _waiting(job), 40)


def _waiting(job: Running) -> str:
    running = job.conditions().get("Running", {})
    return str(running.get("message", "")) if running.get("status") == "False" else ""


def test_a_failed_launcher_is_told_with_its_exit_code(jobs: dict[str, Running]) -> None:
    """AC-15, OBS-4: condition and Event say who, which code, and its last words."""
    job = jobs["exits"]
    failed = job.until("Failed", 240)
    assert failed["reason"] == "LauncherPodFailed"
    assert "exit code 7" in failed["message"]
    assert "no licence" in failed["message"]
    assert "mpi-agent" not in failed["message"], "what the agent tells machines is not for people"
    assert f"LauncherPodFailed: {failed['message']}" in job.events()
    assert job.object()["status"]["replicaStatuses"]["Launcher"] == {"failed": 1}


def test_a_python_exception_ends_the_job_and_is_explained(jobs: dict[str, Running]) -> None:
    """OBS-2, SC-006: without `-m mpi4py` the other ranks would wait for ever."""
    job = jobs["raises"]
    failed = job.until("Failed", 240)
    for part in ("Rank 1", "raises-worker-1", "ValueError", "no such column: price"):
        assert part in failed["message"], failed
    assert any("no such column" in event for event in job.events())
    (last,) = history.read(job.object()["metadata"]["annotations"])
    (first, *_) = last.findings
    assert (first.cause, first.ranks, first.hosts) == (
        "ProgramException",
        (1,),
        ("raises-worker-1",),
    )
    assert first.line == "ValueError: no such column: price"


def test_a_killed_worker_costs_one_attempt(jobs: dict[str, Running]) -> None:
    """AC-14, CTL-11: launcher fresh, lost worker replaced, the healthy one kept."""
    job = jobs["killed"]
    job.until("Running", 240)
    before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in job.pods()}
    job.kubectl("delete", "pod", "killed-worker-1", "--force", "--grace-period=0")
    restarting = job.until("Restarting", 60)
    assert "killed-worker-1" in restarting["message"]
    assert "retry 1 of 1" in restarting["message"]
    job.until("Running", 120)
    after = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in job.pods()}
    assert after["killed-worker-0"] == before["killed-worker-0"]
    assert after["killed-worker-1"] != before["killed-worker-1"]
    (launcher,) = (name for name in after if "launcher" in name)
    assert launcher not in before
    job.let_go()
    job.until("Succeeded", 120)
    assert sorted(job.said("worker")) == ["killed-worker-0", "killed-worker-1"]
    assert any(event.startswith("WorkerPodFailed") for event in job.events())


def test_beyond_the_budget_a_killed_worker_fails_the_job(jobs: dict[str, Running]) -> None:
    """AC-14."""
    job = jobs["spent"]
    job.until("Running", 240)
    job.kubectl("delete", "pod", "spent-worker-0", "--force", "--grace-period=0")
    failed = job.until("Failed", 60)
    assert "spent-worker-0" in failed["message"]
    assert "-ssh" not in job.kubectl("get", "secrets", "-o", "name", f"--selector=app={job.name}")


def test_a_job_that_hangs_is_marked_and_left_alone(jobs: dict[str, Running]) -> None:
    """OBS-2: the kubelet asks once a minute, so that this comes late."""
    job = jobs["hangs"]
    job.until("Running", 240)
    text = "rank 0 on hangs-worker-0 waits in MPI_Barrier (hangs.py:6); "
    text += "rank 1 on hangs-worker-1 has not come there: uses no CPU at hangs.py:5"

    def message() -> str:
        return str(job.conditions()["Running"]["message"])

    try:
        eventually("it is marked", lambda: text in message(), 150)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{job.story()}") from None
    assert any(event.startswith("NoProgress: ") and text in event for event in job.events())
    assert {pod["status"]["phase"] for pod in job.pods()} == {"Running"}
    job.kubectl("delete", "mpijob", job.name)


def test_a_job_that_fits_nowhere_ends_and_nothing_stays_pending(jobs: dict[str, Running]) -> None:
    """AC-16. Last, since it is only a matter of time."""
    job = jobs["huge"]
    failed = job.until("Failed", 120)
    assert failed["reason"] == "SchedulingTimeout"
    assert "within 45 s" in failed["message"]
    assert "too little cpu" in failed["message"]
    status = job.object()["status"]
    times = [datetime.fromisoformat(status[k]) for k in ("startTime", "completionTime")]
    assert (times[1] - times[0]).total_seconds() < 75
    eventually("no pod is left", lambda: not job.pods(), 60)
