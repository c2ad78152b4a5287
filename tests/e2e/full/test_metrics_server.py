"""What jobs use, by metrics-server as its project publishes it (AC-10).

It has a cluster of its own: an API that a pod serves holds up the deletion of namespaces wherever
that pod is away, and other tests stop nodes.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from openshift_ai_sdk.training import MPIJobClient, connect
from tests.api.accounts import account
from tests.api.odh import Odh
from tests.api.running import Controller
from tests.cluster import Kubectl, eventually, restricted, shared_cluster
from tests.e2e.operator import mpijob, serving, submit
from tests.e2e.test_top import BUSY, MEBIBYTE
from tools.cluster import images
from tools.cluster.spec import Spec
from tools.cluster.user_images import USER_IMAGES, build_image

IMAGE = USER_IMAGES["mpi-openmpi"]
ROLES = Path(__file__).parents[3] / "manifests/roles"

pytestmark = pytest.mark.timeout(500, func_only=True)


@pytest.fixture(scope="module")
def measured() -> Iterator[Spec]:
    addons = ("dns", "scc", "metrics-server")
    wanted = Spec(name="test-metrics", profile="full", addons=addons, nodes=2)
    for spec in shared_cluster(wanted):
        images.load(spec, [build_image(IMAGE)])
        yield spec


@pytest.fixture(scope="module")
def controller(measured: Spec, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    yield from serving(measured, tmp_path_factory.mktemp("operator"))


def test_a_viewer_sees_what_metrics_server_measures(
    measured: Spec, controller: Controller, tmp_path: Path
) -> None:
    """By `odh top` and the SDK, with the shipped role alone; the same as `kubectl top`."""
    kubectl = Kubectl(measured, f"test-{secrets.token_hex(4)}")
    kubectl.apply(restricted(kubectl.namespace))
    kubectl("apply", "-k", str(ROLES))
    config = account(kubectl, "viewer", "mpijob-viewer").kubeconfig(tmp_path)
    command = ["mpirun", "--bind-to", "none", "-n", "2", "python3", "-c", BUSY]
    job = submit(kubectl, mpijob("busy", IMAGE.reference, command, slots=1))
    job.until("Running")
    odh = Odh(config, kubectl.namespace)
    early = odh.json("top", "busy")
    assert early["items"] and not any("no metrics API" in note for note in early["notes"])

    def complete() -> bool:
        items = odh.json("top", "busy")["items"]
        workers = [item for item in items if "worker" in item["pod"]]
        return len(items) == 3 and all((w["memoryBytes"] or 0) > 100 * MEBIBYTE for w in workers)

    eventually("every pod is measured", complete, 120)
    metrics = MPIJobClient(backend=connect(kubeconfig=config, namespace=kubectl.namespace)).metrics(
        "busy"
    )
    assert (metrics.source, metrics.notes) == ("metrics API", ())
    assert metrics.cpus is not None and metrics.cpus > 0.05
    assert metrics.memory_bytes is not None and metrics.memory_bytes > 200 * MEBIBYTE
    shown = kubectl("top", "pods", "--no-headers").splitlines()
    theirs = {line.split()[0]: int(line.split()[2].removesuffix("Mi")) for line in shown}
    for pod in metrics.pods:
        assert pod.memory_bytes is not None
        assert abs(pod.memory_bytes / MEBIBYTE - theirs[pod.pod]) < 50
    job.let_go()
    job.until("Succeeded")
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
