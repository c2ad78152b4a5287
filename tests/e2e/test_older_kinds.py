"""PyTorchJobs and TFJobs with real pods: list, get, logs and delete as for MPIJobs (AC-17).

The definitions are the training operator's own; its pods are made by the test, with its names,
labels and owners, on real nodes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from openshift_ai_sdk.training import JobNotFound, TrainingClient, connect
from tests.api.odh import Odh
from tests.cluster import Kubectl, eventually
from tests.older_kinds import define_older, forget_older, older_job, operators_pods
from tools.cluster.spec import Spec

TIME = "2026-01-31T12:00:00Z"
SAYS = 'trap "exit 0" TERM; echo "Rank of $(hostname)"; sleep 600 & wait'
JOBS = (
    ("PyTorchJob", "torch", {"Master": 1, "Worker": 2}),
    ("TFJob", "tf", {"PS": 1, "Worker": 2}),
)

pytestmark = pytest.mark.timeout(300, func_only=True)


@pytest.fixture(scope="module")
def older(cluster: Spec) -> Iterator[None]:
    kubectl = Kubectl(cluster)
    define_older(kubectl)
    yield
    forget_older(kubectl)


@pytest.fixture
def jobs(older: None, namespace: Kubectl, image: Callable[[str], str]) -> Kubectl:
    """A PyTorchJob with a master and a TFJob without a chief, both at work."""
    container = {
        "image": image("mpi-openmpi"),
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", SAYS],
    }
    for kind, name, replicas in JOBS:
        namespace.apply(older_job(kind, name, replicas, container))
        stored = namespace.get(f"{kind.lower()}s.kubeflow.org", name)
        namespace.apply(*operators_pods(stored))
        condition = {"type": "Running", "status": "True", "reason": "Running", "message": "runs"}
        status = {
            "replicaStatuses": {role: {"active": number} for role, number in replicas.items()},
            "conditions": [{**condition, "lastUpdateTime": TIME, "lastTransitionTime": TIME}],
            "startTime": TIME,
        }
        change = f"--patch={json.dumps({'status': status})}"
        where = (f"{kind.lower()}s.kubeflow.org", name, "--subresource=status", "--type=merge")
        namespace("patch", *where, change)
    namespace.wait("--for=condition=Ready", "pod", "--all", seconds=150)
    return namespace


def test_older_kinds_are_listed_read_followed_and_deleted_with_their_pods(jobs: Kubectl) -> None:
    odh = Odh(jobs.spec.kubeconfig, jobs.namespace)
    listed = odh.json("training", "list")["items"]
    found = sorted((one["kind"], one["name"], one["state"]) for one in listed)
    assert found == [("PyTorchJob", "torch", "Running"), ("TFJob", "tf", "Running")]
    assert odh.json("training", "get", "tfjob", "tf")["kind"] == "TFJob"

    def said(kind: str, name: str, *words: str) -> list[str]:
        return sorted(odh("training", "logs", kind, name, *words).stdout.splitlines())

    assert said("pytorchjob", "torch") == ["Rank of torch-master-0"]
    assert said("pytorchjob", "torch", "--worker", "1") == ["Rank of torch-worker-1"]
    everybody = [f"Rank of tf-{pod}" for pod in ("ps-0", "worker-0", "worker-1")]
    assert said("tfjob", "tf") == everybody
    assert said("tfjob", "tf", "--worker", "0") == ["Rank of tf-worker-0"]

    odh("training", "delete", "tfjob", "tf")
    left = {f"torch-{pod}" for pod in ("master-0", "worker-0", "worker-1")}
    eventually("its pods are gone, and no other", lambda: _pods(jobs) == left, 120)
    backend = connect(kubeconfig=jobs.spec.kubeconfig, namespace=jobs.namespace)
    client = TrainingClient(backend=backend)
    assert [one.key.name for one in client.list_jobs()] == ["torch"]
    assert "Rank of torch-master-0" in [line.text for line in client.get_job_logs("torch")]
    client.delete_job("torch")
    eventually("the other's too", lambda: not _pods(jobs), 120)
    with pytest.raises(JobNotFound):
        client.get_job("torch")


def _pods(kubectl: Kubectl) -> set[str]:
    items = kubectl.read("api/v1/pods")["items"]
    return {item["metadata"]["name"] for item in items}
