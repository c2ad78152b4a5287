"""SDK and `odh` where the Go controllers serve the APIs, and nothing of ours runs on the cluster.

The jobs are such as those controllers can run: with sshd as the workers' command and a fixed user
id. There is nobody who tells of ranks, so lines have none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from openshift_ai_sdk.training import JobFailed, JobNotFound, MPIJob, TrainingClient
from tests.api.odh import Odh
from tests.cluster import Kubectl
from tests.e2e.full.test_peers import (
    READY,
    SSHD,
    container,
    mpi_runtime,
    peers,
    plain,
)
from tests.e2e.manifests import Object
from tests.lifecycle import PATIENCE, begun, until

__all__ = ["peers", "plain"]

TRAIN = """\
import os, sys, time
from mpi4py import MPI
world, epochs, bad = MPI.COMM_WORLD, int(sys.argv[1]), int(sys.argv[2])
for epoch in range(1, epochs + 1):
    world.Barrier()
    if world.rank == 0:
        print(f"epoch {epoch}/{epochs} loss {1 / epoch}", flush=True)
    if world.rank == bad:
        os._exit(7)
    time.sleep(0.1)
print("rank", world.rank, "on", MPI.Get_processor_name(), flush=True)
"""
NOBODY = -1

pytestmark = pytest.mark.timeout(500, func_only=True)


@pytest.fixture
def odh(plain: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Odh]:
    """A user of the namespace, by `connect()` and by the command line."""
    config = json.loads(plain.spec.kubeconfig.read_text())
    for context in config["contexts"]:
        context["context"]["namespace"] = plain.namespace
    path = tmp_path / "kubeconfig"
    path.touch(0o600)
    path.write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(path))
    yield Odh(path, plain.namespace)
    client = TrainingClient()
    for job in client.list_jobs():
        client.delete_job(job.key.name)


def command(epochs: int, bad: int) -> list[str]:
    words = [str(epochs), str(bad)]
    return ["mpirun", "-n", "2", "--bind-to", "none", "python3", "-c", TRAIN, *words]


def mpijob(name: str, epochs: int, bad: int = NOBODY) -> Object:
    launcher = container("launcher", command=command(epochs, bad))
    worker = container("worker", command=SSHD, readinessProbe=READY)
    replicas = {
        "Launcher": {"replicas": 1, "template": {"spec": {"containers": [launcher]}}},
        "Worker": {"replicas": 2, "template": {"spec": {"containers": [worker]}}},
    }
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "slotsPerWorker": 1,
            "sshAuthMountPath": "/home/mpiuser/.ssh",
            "launcherCreationPolicy": "WaitForWorkersReady",
            "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 0},
            "mpiReplicaSpecs": replicas,
        },
    }


def trainjob(name: str, runtime: str, epochs: int) -> Object:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": runtime},
            "trainer": {"numNodes": 2, "command": command(epochs, NOBODY)},
        },
    }


def suspended(job: MPIJob) -> None:
    job.suspend()
    until("suspended", lambda: job.status.state == "Suspended")
    until("no pods", lambda: not job.describe().pods)


def lived(job: MPIJob, *, resumes: bool) -> None:
    """The life of a job that runs, whichever controller serves it, to its deletion."""
    begun(job)
    until("running", lambda: job.status.state == "Running")
    if resumes:
        suspended(job)
        job.resume()
    last = job.wait(timeout=PATIENCE)
    assert last.succeeded and last.progress is not None and last.progress.fraction == 1.0
    lines = [line.text for line in job.logs()]
    assert {line.split()[1] for line in lines if line.startswith("rank ")} == {"0", "1"}
    job.restart()
    assert not job.status.finished
    *_, end = job.watch()
    assert end.state == "Succeeded"
    job.delete()
    with pytest.raises(JobNotFound, match=f"{job.namespace}/{job.name}"):
        job.get_status()


def test_an_mpijob_lives_its_whole_life_under_the_go_operator(odh: Odh) -> None:
    """It does not resume: its published rights lack `jobs/status`, which resuming takes there."""
    lived(MPIJob.from_manifest(mpijob("life", 40)).create(), resumes=False)
    held = MPIJob.from_manifest(mpijob("held", 6000)).create()
    begun(held)
    suspended(held)


def test_a_failed_mpijob_of_the_go_operator_is_told_at_once(odh: Odh) -> None:
    job = MPIJob.from_manifest(mpijob("bad", 3, 1)).create()
    with pytest.raises(JobFailed) as caught:
        job.wait(timeout=PATIENCE)
    assert caught.value.reason
    # Its log is gone: a Job that gives up takes its pod along.
    assert odh.json("mpijob", "get", "bad")["status"]["conditions"][-1]["type"] == "Failed"


def test_an_mpijob_of_the_go_operator_by_the_command_line(odh: Odh, tmp_path: Path) -> None:
    """Created from its file, seen, entered, waited for, deleted."""
    (tmp_path / "long.json").write_text(json.dumps(mpijob("long", 6000)))
    odh("mpijob", "create", "-f", str(tmp_path / "long.json"))
    odh("mpijob", "wait", "long", "--for", "Running", "--timeout", "120s", seconds=150)
    until("it prints", lambda: "epoch 2/" in odh("mpijob", "logs", "long").stdout)
    assert odh("mpijob", "exec", "long", "--worker", "1", "--", "hostname").stdout == (
        "long-worker-1\n"
    )
    assert (
        "no rank runs now"
        in odh("mpijob", "exec", "long", "--rank", "0", "--", "true", code=2).stderr
    )
    page = odh("mpijob", "describe", "long").stdout
    assert "long-worker-0" in page and "Running" in page
    odh("mpijob", "delete", "long")
    assert odh.json("mpijob", "list")["items"] == []


def test_a_trainjob_lives_its_whole_life_under_the_go_trainer(
    odh: Odh, plain: Kubectl, tmp_path: Path
) -> None:
    """Created by the command line, lived by the SDK."""
    plain.apply(mpi_runtime(plain.namespace))
    path = tmp_path / "life.json"
    path.write_text(json.dumps(trainjob("life", plain.namespace, 40)))
    try:
        odh("trainjob", "create", "-f", str(path))
        lived(MPIJob.get("life"), resumes=True)
    finally:
        plain("delete", "clustertrainingruntime", plain.namespace, "--wait=false")
