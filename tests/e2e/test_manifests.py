"""The manifests of `examples/manifests`, as they are, on real nodes. They run side by side."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.api.running import Controller
from tests.cluster import Kubectl, eventually, restricted
from tests.e2e.manifests import pod
from tests.e2e.operator import Running
from tools.cluster.spec import Spec

FOLDER = Path(__file__).parents[2] / "examples" / "manifests"
NAMES = (
    "simple-mpijob",
    "gpu-mpijob",
    "intel-mpi-job",
    "volcano-scheduling",
    "network-policy-restricted",
)
GPU = "nvidia.com/gpu"
GPUS_OF_A_NODE = 4
# A network learns of a new pod a moment after it starts, so a friend must knock more than once.
KNOCK = """\
import socket, sys, time
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    try:
        sys.exit(socket.create_connection((sys.argv[1], 2222), 3).close())
    except OSError as error:
        print(error)
        time.sleep(0.5)  # between two knocks; the loop has a deadline
sys.exit("closed")
"""

pytestmark = pytest.mark.timeout(400, func_only=True)


@pytest.fixture(scope="module")
def gpus(cluster: Spec) -> Iterator[int]:
    """Every node says that it has GPUs, which is all that a scheduler wants to know."""
    kubectl = Kubectl(cluster)
    nodes = kubectl("get", "nodes", "-o", "name").split()
    path = f"/status/capacity/{GPU.replace('/', '~1')}"
    for node in nodes:
        _patch_node(kubectl, node, {"op": "add", "path": path, "value": str(GPUS_OF_A_NODE)})
    eventually("GPUs", lambda: _allocatable(kubectl) == [str(GPUS_OF_A_NODE)] * len(nodes), 60)
    yield GPUS_OF_A_NODE * len(nodes)
    for node in nodes:
        _patch_node(kubectl, node, {"op": "remove", "path": path})


def _patch_node(kubectl: Kubectl, node: str, change: dict[str, str]) -> None:
    kubectl("patch", node, "--subresource=status", "--type=json", f"--patch={json.dumps([change])}")


def _allocatable(kubectl: Kubectl) -> list[str]:
    nodes = json.loads(kubectl("get", "nodes", "-o", "json"))["items"]
    return [node["status"]["allocatable"].get(GPU, "") for node in nodes]


@pytest.fixture(scope="module")
def jobs(
    operator: Controller, cluster: Spec, gpus: int, image: Callable[[str], str]
) -> Iterator[dict[str, Running]]:
    for directory in ("mpi-openmpi", "mpi-intel"):
        image(directory)
    kubectl = Kubectl(cluster, f"test-manifests-{secrets.token_hex(4)}")
    kubectl.apply(restricted(kubectl.namespace))
    for name in ("network-policies", "priority-class"):
        kubectl("apply", "-f", str(FOLDER / f"{name}.yaml"))
    for name in NAMES:
        kubectl("apply", "-f", str(FOLDER / f"{name}.yaml"))
    # Its workers are looked at after its end.
    kept = '{"spec": {"runPolicy": {"cleanPodPolicy": "None"}}}'
    kubectl("patch", "mpijob", "gpu-mpijob", "--type=merge", f"--patch={kept}")
    yield {name: Running(kubectl, name) for name in NAMES}
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
    kubectl("delete", "-f", str(FOLDER / "priority-class.yaml"))


def hosts(job: Running) -> list[str]:
    """Where ranks were, by the launcher's summary: a host for each rank."""
    job.until("Succeeded", 300)
    return [host.pod for host in job.summary().hosts for _ in host.ranks]


@pytest.mark.parametrize("name", NAMES)
def test_the_manifest_runs_on_all_its_workers(jobs: dict[str, Running], name: str) -> None:
    """AC-3, API-1."""
    spec = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())["spec"]
    workers = spec["mpiReplicaSpecs"]["Worker"]["replicas"]
    expected = {f"{name}-worker-{index}": spec["slotsPerWorker"] for index in range(workers)}
    assert Counter(hosts(jobs[name])) == expected


def test_each_worker_has_its_gpus_and_the_launcher_none(jobs: dict[str, Running]) -> None:
    """AC-11: as the scheduler has placed them, no more on a node than it has."""
    job = jobs["gpu-mpijob"]
    job.until("Succeeded", 300)
    log = job.log().splitlines()
    assert Counter(line for line in log if "WARN" in line) == {
        f"gpu-mpijob-worker-{index} WARN": 2 for index in range(4)
    }
    asked = [pod["spec"]["containers"][0]["resources"]["limits"] for pod in job.pods("worker")]
    assert asked == [{GPU: "2"}] * 4
    nodes = Counter(pod["spec"]["nodeName"] for pod in job.pods("worker"))
    assert max(nodes.values()) * 2 <= GPUS_OF_A_NODE
    (launcher,) = job.pods("launcher")
    assert GPU not in json.dumps(launcher["spec"])


def test_intel_s_benchmark_prints_its_table(jobs: dict[str, Running]) -> None:
    job = jobs["intel-mpi-job"]
    job.until("Succeeded", 300)
    assert "# Benchmarking Allreduce" in job.log()
    assert "# #processes = 16" in job.log()


def test_the_restricted_job_is_closed_to_others(
    jobs: dict[str, Running], image: Callable[[str], str]
) -> None:
    """CTL-6, by hand: the policies of the file, enforced by the cluster's own network."""
    job = jobs["network-policy-restricted"]
    job.until("Succeeded", 300)
    address = job.pods("worker")[0]["status"]["podIP"]
    knock = ["python3", "-c", KNOCK, address]
    patient, stubborn = [*knock, "60"], [*knock, "20"]
    same = {"training.kubeflow.org/job-name": job.name}
    reference = image("mpi-openmpi")
    friend = pod("friend", reference, 1, patient, restartPolicy="Never", labels=same)
    job.kubectl.apply(friend)
    job.kubectl.wait("--for=jsonpath={.status.phase}=Succeeded", "pod/friend", seconds=180)
    # The network lets friends in by now, so whoever stays outside is meant to.
    job.kubectl.apply(pod("stranger", reference, 1, stubborn, restartPolicy="Never"))
    job.kubectl.wait("--for=jsonpath={.status.phase}=Failed", "pod/stranger", seconds=180)
    assert "closed" in job.kubectl("logs", "stranger")


def test_the_gang_job_says_what_has_no_effect_without_a_gang_scheduler(
    jobs: dict[str, Running],
) -> None:
    """AC-2, CTL-5: four workers, a queue and a priority class, and they run all the same."""
    job = jobs["volcano-scheduling"]
    policy = job.object()["spec"]["runPolicy"]["schedulingPolicy"]
    assert (policy["queue"], policy["priorityClass"]) == ("default", "mpi-training")
    assert job.kubectl.get("priorityclass", policy["priorityClass"])["value"] > 0
    job.until("Succeeded", 300)
    (said,) = (text for text in job.events() if text.startswith("FieldsWithoutEffect"))
    assert "minAvailable, priorityClass have no effect" in said


@pytest.mark.parametrize("role", ["Launcher", "Worker"])
def test_pods_of_the_restricted_job_meet_the_restricted_standard_by_themselves(
    cluster: Spec, role: str
) -> None:
    """AC-20: in a namespace where nobody fills in a security context."""
    admin = Kubectl(cluster)
    bare = f"test-restricted-{secrets.token_hex(4)}"
    admin("create", "namespace", bare)
    admin("label", "namespace", bare, "pod-security.kubernetes.io/enforce=restricted")
    job = yaml.safe_load((FOLDER / "network-policy-restricted.yaml").read_text())
    spec = job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    kubectl = Kubectl(cluster, bare)
    dry = ("create", "--dry-run=server", "-f", "-")
    try:
        eventually(
            "its account",
            lambda: not kubectl.attempt("get", "serviceaccount", "default").returncode,
        )
        kubectl(*dry, data=json.dumps(body))
        spec["containers"][0].pop("securityContext")
        refused = kubectl.attempt(*dry, data=json.dumps(body))
        assert "violates PodSecurity" in refused.stderr
    finally:
        admin("delete", "namespace", bare, "--wait=false")
