"""A job's policies on real nodes: suspended, resumed, launched late, cleaned away, forgotten."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pytest

from tests.cluster import Kubectl, eventually
from tests.e2e.manifests import Object
from tests.e2e.operator import Running, submit, waiting_job

pytestmark = pytest.mark.timeout(400, func_only=True)
Image = Callable[[str], str]


def test_a_job_waits_runs_pauses_runs_again_and_is_forgotten(
    restricted_home: Kubectl, image: Image
) -> None:
    """AC-2, AC-4, CTL-2: suspend frees all pods; every launcher comes after its workers' Ready."""
    made = waiting_job(
        "life",
        image("mpi-openmpi"),
        policy={"suspend": True, "cleanPodPolicy": "All", "ttlSecondsAfterFinished": 20},
        launcherCreationPolicy="WaitForWorkersReady",
    )
    job = submit(restricted_home, made)
    job.until("Suspended", 60)
    assert job.pods() == []
    _suspend(job, False)
    job.until("Running", 240)
    _assert_launched_late(job)
    first = {pod["metadata"]["uid"] for pod in job.pods()}
    _suspend(job, True)
    eventually("nothing runs", lambda: not job.pods(), 60)
    assert job.conditions()["Suspended"]["status"] == "True"
    assert job.conditions()["Running"]["status"] == "False"
    _suspend(job, False)
    job.until("Running", 240)
    _assert_launched_late(job)
    assert not first & {pod["metadata"]["uid"] for pod in job.pods()}
    job.let_go()
    job.until("Succeeded", 120)
    eventually("all pods are cleaned away", lambda: not job.pods(), 60)
    gone = restricted_home.attempt
    eventually("job is forgotten", lambda: gone("get", "mpijob", "life").returncode != 0, 120)
    left = ("get", "jobs,services,configmaps,secrets", "-o", "name")
    eventually("no child is left", lambda: "/life" not in restricted_home(*left))


def _suspend(job: Running, on: bool) -> None:
    change = f'{{"spec": {{"runPolicy": {{"suspend": {str(on).lower()}}}}}}}'
    job.kubectl("patch", "mpijob", job.name, "--type=merge", f"--patch={change}")


def _assert_launched_late(job: Running) -> None:
    ready = [_ready(pod) for pod in job.pods("worker")]
    (launcher,) = job.pods("launcher")
    assert len(ready) == 2
    assert datetime.fromisoformat(launcher["metadata"]["creationTimestamp"]) >= max(ready)


def _ready(pod: Object) -> datetime:
    (found,) = (c for c in pod["status"]["conditions"] if c["type"] == "Ready")
    assert found["status"] == "True"
    return datetime.fromisoformat(found["lastTransitionTime"])
