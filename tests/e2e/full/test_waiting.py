"""Nodes, claims and devices that come late, and names that DNS learns late, on real nodes.

W-4, U-1, U-6: waiting costs no attempt, is told with its cause, and ends at the administrator's
default where a job says nothing. The agent's bound for workers that run is 10 s here, so that a
minute stands for hours; `MPI_TRAINER_LATE_SECONDS` and `MPI_TRAINER_RUNS` make it longer.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.api.running import Controller
from tests.cluster import Kubectl, eventually, shared_cluster
from tests.e2e.manifests import Object
from tests.e2e.operator import Running, mpijob, serving, submit
from tests.e2e.test_trainjob import OURS, Trained
from tools.cluster.spec import Spec

LATE = int(os.environ.get("MPI_TRAINER_LATE_SECONDS", "60"))
RUNS = int(os.environ.get("MPI_TRAINER_RUNS", "4"))
DEFAULT = 75
"""the administrator's, in seconds"""
GPU = "example.com/gpu"
HURRIED = {"annotations": {f"{OURS}/wait-seconds": "10"}}
PATIENT = {"schedulingPolicy": {"scheduleTimeoutSeconds": 1800}, "backoffLimit": 6}
OWN_SSHD = ["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"]
NAMES = ["mpirun", "--bind-to", "none", "hostname"]

pytestmark = pytest.mark.timeout(1800, func_only=True)
Image = Callable[[str], str]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Spec]:
    """A cluster of its own, since its nodes are cordoned."""
    addons = ("dns", "jobset", "scc")
    yield from shared_cluster(Spec(name="test-waiting", profile="full", addons=addons))


@pytest.fixture(scope="session")
def operator(cluster: Spec, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    folder = tmp_path_factory.mktemp("operator")
    yield from serving(cluster, folder, f"--schedule-timeout-default={DEFAULT}")


@pytest.fixture(scope="module")
def space(operator: Controller, cluster: Spec) -> Iterator[Kubectl]:
    name = f"test-{secrets.token_hex(4)}"
    kubectl = Kubectl(cluster, name)
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield kubectl
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def cordoned(cluster: Spec) -> Iterator[Kubectl]:
    """Two of three nodes take no pod."""
    kubectl = Kubectl(cluster)
    kubectl("cordon", "node2", "node3")
    yield kubectl
    kubectl("uncordon", "node2", "node3")


def on_node(index: int) -> Object:
    return {"nodeSelector": {"kubernetes.io/hostname": f"node{index}"}}


def late_job(name: str, image: str, worker: Object, **more: Any) -> Object:
    """Launcher on a node that is there, workers with what is not."""
    command = ["mpirun", "--bind-to", "none", "-n", "2", "hostname"]
    given = {"launcher": on_node(1), "worker": worker, "slots": 1, "metadata": HURRIED}
    return mpijob(name, image, command, **{**given, "policy": PATIENT, **more})


def claimed(image: str) -> Object:
    container = {"name": "mpi", "image": image, "imagePullPolicy": "Never"}
    container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]  # type: ignore[assignment]
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "late"}}
    return {"containers": [container], "volumes": [volume], **on_node(1)}


def with_gpu(image: str) -> Object:
    container: Object = {"name": "mpi", "image": image, "imagePullPolicy": "Never"}
    container["resources"] = {"limits": {GPU: "1"}}
    return {"containers": [container]}


def make_claim(space: Kubectl) -> None:
    name = f"late-{space.namespace}"
    shared: Object = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {"capacity": {"storage": "1Mi"}, "hostPath": {"path": "/tmp"}, **shared}
    claim = {"volumeName": name, "resources": {"requests": {"storage": "1Mi"}}, **shared}
    volume["persistentVolumeReclaimPolicy"] = "Retain"
    kind = {"apiVersion": "v1", "kind": "PersistentVolume"}
    space.apply({**kind, "metadata": {"name": name}, "spec": volume})
    kind["kind"] = "PersistentVolumeClaim"
    space.apply({**kind, "metadata": {"name": "late"}, "spec": claim})


def add_gpus(space: Kubectl) -> None:
    patch = json.dumps({"status": {"capacity": {GPU: "2"}}})
    space("patch", "node", "node1", "--subresource=status", "--type=merge", "-p", patch)


def waits_for(job: Running, words: str) -> None:
    def told() -> bool:
        running = job.conditions().get("Running", {})
        return running.get("status") == "False" and words in running.get("message", "")

    eventually(f"{job.name} says {words}", told, 45)


def spent_nothing(job: Running) -> None:
    record = job.object()["metadata"].get("annotations", {}).get(f"{OURS}/record", "{}")
    assert json.loads(record).get("attempt", 1) == 1, record
    assert not json.loads(record).get("failures"), record
    assert len(job.pods("launcher")) == 1
    assert "Restarting" not in job.conditions()


def test_what_comes_late_costs_no_attempt_and_is_told_meanwhile(
    space: Kubectl, cordoned: Kubectl, image: Image
) -> None:
    """W-4: nodes, a claim, a device; MPIJobs and a TrainJob, side by side."""
    reference = image("mpi-openmpi")
    nodes = submit(space, late_job("nodes", reference, on_node(2)))
    claim = submit(space, late_job("claim", reference, claimed(reference)))
    device = submit(space, late_job("device", reference, with_gpu(reference)))
    space.apply(deepspeed("late-runtime", reference, node=on_node(3)))
    train = trained(space, "train", "late-runtime", f"{OURS}/schedule-timeout-seconds")
    began = time.monotonic()
    waits_for(nodes, "2 were unschedulable")
    waits_for(claim, 'persistentvolumeclaim "late" not found')
    waits_for(device, f"too little {GPU}")
    eventually("the TrainJob says so", lambda: "unschedulable" in train.finding("cause"), 45)
    while time.monotonic() - began < LATE:
        for job in (nodes, claim, device):
            assert "Failed" not in job.conditions(), job.story()
            assert job.conditions()["Running"]["reason"] == "MPIJobWaiting"
        assert train.finding("phase") == "Pending"
        time.sleep(1)  # what is waited for takes its time
    for job in (nodes, claim, device):
        assert any(event.startswith("MPIJobWaiting: ") for event in job.events())
    make_claim(space)
    add_gpus(space)
    cordoned("uncordon", "node2", "node3")
    for job in (nodes, claim, device):
        job.until("Succeeded", 400)
        spent_nothing(job)
    train.until("Complete", seconds=400)
    one_launcher(train)


def test_without_a_field_a_job_ends_at_the_administrators_default(
    space: Kubectl, image: Image
) -> None:
    """AC-16: reason SchedulingTimeout, no attempt spent, nothing left Pending, the cause kept."""
    reference = image("mpi-openmpi")
    huge = {"resources": {"requests": {"cpu": "1000"}}}
    job = late_job("nowhere", reference, {}, policy={"backoffLimit": 6}, container=huge)
    del job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["resources"]
    found = submit(space, job)
    space.apply(deepspeed("nowhere-runtime", reference, container=huge))
    train = trained(space, "nowhere-train", "nowhere-runtime")
    failed = found.until("Failed", DEFAULT + 60)
    assert failed["reason"] == "SchedulingTimeout"
    assert "too little cpu" in failed["message"]
    status = found.object()["status"]
    assert DEFAULT - 2 <= seconds(status["startTime"], status["completionTime"]) <= DEFAULT + 30
    record = json.loads(found.object()["metadata"]["annotations"][f"{OURS}/record"])
    assert [one["reason"] for one in record["failures"]] == ["SchedulingTimeout"]
    assert "too little cpu" in found.conditions()["Running"]["message"]
    told = train.until("Failed", seconds=DEFAULT + 120)
    assert told["reason"] == "SchedulingTimeout"
    assert "too little cpu" in told["message"]
    eventually("nothing is left Pending", lambda: not pending(space), 60)


def seconds(begin: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()


def pending(space: Kubectl) -> list[Object]:
    pods = space.read("api/v1/pods")["items"]
    return [pod for pod in pods if pod["status"]["phase"] == "Pending"]


def deepspeed(
    name: str, image: str, node: Object | None = None, container: Object | None = None
) -> Object:
    """The public trainer's runtime for DeepSpeed field by field, but for the image's name."""
    main = {"name": "node", "image": image, "imagePullPolicy": "Never"}
    main["securityContext"] = {"runAsUser": 1000}  # type: ignore[assignment]
    user = {"securityContext": {"fsGroup": 1000}}
    probe = {"tcpSocket": {"port": 2222}, "initialDelaySeconds": 5}
    sshd = {"command": OWN_SSHD[:1], "args": OWN_SSHD[1:], "readinessProbe": probe}
    pods = {
        "node": {**user, "containers": [{**main, **sshd, **(container or {})}], **(node or {})},
        "launcher": {**user, "containers": [main]},
    }
    jobs: list[Object] = [
        {"name": role, "template": {"spec": {"template": {"spec": pod}}}}
        for role, pod in pods.items()
    ]
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    jobs[1]["dependsOn"] = [{"name": "node", "status": "Ready"}]
    jobs[1]["template"]["metadata"] = {"labels": labels}
    mpi = {
        "numProcPerNode": 1,
        "mpiImplementation": "OpenMPI",
        "sshAuthMountPath": "/home/mpiuser/.ssh",
        "runLauncherAsNode": True,
    }
    success = {"operator": "All", "targetReplicatedJobs": ["launcher"]}
    network = {"publishNotReadyAddresses": True}
    template = {"network": network, "successPolicy": success, "replicatedJobs": jobs}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": name},
        "spec": {"mlPolicy": {"numNodes": 1, "mpi": mpi}, "template": {"spec": template}},
    }


def trained(space: Kubectl, name: str, runtime: str, patience: str = "") -> Trained:
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "annotations": {patience: "1800"} if patience else {}},
        "spec": {
            "runtimeRef": {"name": runtime, "kind": "TrainingRuntime"},
            "trainer": {"numNodes": 2, "command": NAMES},
        },
    }
    space.apply(job)
    return Trained(space, name)


def one_launcher(job: Trained) -> None:
    launchers = [p for p in job.pods() if "-launcher-" in p["metadata"]["name"]]
    assert len(launchers) == 1, job.story()
    (status,) = launchers[0]["status"]["containerStatuses"]
    assert status["restartCount"] == 0, job.story()


def test_the_public_deepspeed_runtime_needs_one_launcher_pod(space: Kubectl, image: Image) -> None:
    """U-1: user, sshd and entry point are its image's; DNS is waited for before its mpirun."""
    space.apply(deepspeed("deepspeed-distributed", image("mpi-openmpi")))
    for first in range(0, RUNS, 4):
        names = [f"ds-{number}" for number in range(first, min(first + 4, RUNS))]
        jobs = [trained(space, name, "deepspeed-distributed") for name in names]
        for job in jobs:
            job.until("Complete", seconds=400)
            one_launcher(job)
            said = [line for line in job.log().splitlines() if line.startswith(job.name)]
            assert sorted(said) == [f"{job.name}-launcher-0-0", f"{job.name}-node-0-0"]
            space("delete", "trainjob", job.name, "--wait=false")


def test_workers_with_an_sshd_of_their_own_need_one_launcher(space: Kubectl, image: Image) -> None:
    """U-6."""
    reference = image("mpi-openmpi")
    user = {"securityContext": {"fsGroup": 1000, "runAsUser": 1000}}
    container = {"name": "mpi", "image": reference, "imagePullPolicy": "Never"}
    worker = {"containers": [{**container, "command": OWN_SSHD}], **user}
    for number in range(max(RUNS // 2, 2)):
        name = f"own-{number}"
        more: Object = {"sshAuthMountPath": "/home/mpiuser/.ssh", "policy": {"backoffLimit": 6}}
        command = ["mpirun", "--bind-to", "none", "-n", "2", "hostname"]
        job = submit(
            space,
            mpijob(name, reference, command, slots=1, worker=worker, launcher=user, **more),
        )
        job.until("Succeeded", 300)
        spent_nothing(job)
        assert sorted(job.said("worker")) == [f"{name}-worker-0", f"{name}-worker-1"]


def test_a_program_that_is_not_there_is_not_tried_again(space: Kubectl, image: Image) -> None:
    """L-4."""
    reference = image("mpi-openmpi")
    policy = {"backoffLimit": 6}
    typo = mpijob("typo", reference, ["mpirun", "-n", "2", "pyhton"], slots=1, policy=policy)
    invalid = mpijob("invalid", "not a name", ["mpirun", "true"], policy=policy)
    jobs = {job["metadata"]["name"]: submit(space, job) for job in (typo, invalid)}
    assert jobs["typo"].until("Failed", 200)["reason"] == "ProgramNotFound"
    assert len(jobs["typo"].pods("launcher")) == 1
    assert jobs["invalid"].until("Failed", 120)["reason"] == "InvalidImageName"
