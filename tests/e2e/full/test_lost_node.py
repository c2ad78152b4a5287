"""A node that is cut off in the middle of a job, and comes back.

Its pod keeps its name until the node itself has confirmed that it is gone: nobody else can know
that its ranks do not run any more. So the job waits, says for what, and goes on afterwards.
"""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.api.running import Controller
from tests.cluster import Kubectl, eventually, restricted, shared_cluster
from tests.e2e.manifests import Object
from tests.e2e.operator import submit, waiting_job
from tools.cluster.spec import Spec

GONE = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")

pytestmark = pytest.mark.timeout(900, func_only=True)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Spec]:
    """A cluster of its own, since a node of it is harmed."""
    yield from shared_cluster(Spec(name="test-lost-node", profile="full", addons=("dns", "scc")))


@pytest.fixture
def space(operator: Controller, cluster: Spec) -> Iterator[Kubectl]:
    kubectl = Kubectl(cluster, f"test-{secrets.token_hex(4)}")
    kubectl.apply(restricted(kubectl.namespace))
    yield kubectl
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


def impatient() -> Object:
    """Pods that are taken from a lost node after seconds instead of minutes."""
    return {
        "tolerations": [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}
            for key in GONE
        ]
    }


def on_node(index: int) -> Object:
    return {"nodeSelector": {"kubernetes.io/hostname": f"node{index}"}}


def test_a_job_outlives_the_loss_of_a_node(
    cluster: Spec, space: Kubectl, image: Callable[[str], str]
) -> None:
    """CTL-11: the loss ends the attempt in bounded time; the next one waits for the pod's end."""
    job = submit(
        space,
        waiting_job(
            "lost",
            image("mpi-openmpi"),
            policy={"backoffLimit": 6},
            launcher=on_node(1) | impatient(),
            worker=impatient() | {"affinity": _away_from_launcher("lost")},
        ),
    )
    job.until("Running", 240)
    before = {pod["metadata"]["name"]: pod for pod in job.pods("worker")}
    (victim,) = (n for n, pod in before.items() if pod["spec"]["nodeName"] == "node3")
    _connect(cluster, "down")
    try:
        restarting = job.until("Restarting", 120)
        assert victim in restarting["message"]
        eventually("its pod is to go", lambda: _going(space, victim), 180)
        eventually(
            "job says why it waits", lambda: "not confirmed" in _waiting(job.conditions()), 90
        )
    finally:
        _connect(cluster, "up")
    job.until("Running", 300)
    after = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in job.pods("worker")}
    assert after[victim] != before[victim]["metadata"]["uid"]
    assert not _going(space, victim)
    job.let_go()
    job.until("Succeeded", 120)
    assert sorted(job.said("worker")) == sorted(before)


def _connect(cluster: Spec, how: str) -> None:
    """Node 3's cable, up or down; the route to its pods goes and comes with it."""
    node = cluster.addresses.node(3)
    subprocess.run(["ip", "link", "set", node.link, how], check=True, timeout=10)
    if how == "up":
        route = ["ip", "route", "replace", node.pods, "via", node.address]
        subprocess.run(route, check=True, timeout=10)


def _going(space: Kubectl, name: str) -> bool:
    answer = space.attempt("get", "pod", name, "-o", "jsonpath={.metadata.deletionTimestamp}")
    return bool(answer.stdout)


def _waiting(conditions: dict[str, Object]) -> str:
    return str(conditions.get("Running", {}).get("message", ""))


def _away_from_launcher(name: str) -> Object:
    """Each worker on a node of its own, none on node1."""
    labels = {
        "training.kubeflow.org/job-name": name,
        "training.kubeflow.org/job-role": "worker",
    }
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
    elsewhere = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node2", "node3"]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {
        "podAntiAffinity": {required: [apart]},
        "nodeAffinity": {required: {"nodeSelectorTerms": [{"matchExpressions": [elsewhere]}]}},
    }
