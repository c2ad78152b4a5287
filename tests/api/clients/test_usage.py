"""What jobs on a cluster use, by its metrics API, and what is said where it gives nothing (AC-10).

The metrics API is a definition of the same group and kind, whose objects the tests write;
`tests/e2e/full/test_top.py` has the real one. Pods have no node here, so nobody can enter them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from openshift_ai_sdk.training import MPIJobClient, connect
from tests.api.accounts import account
from tests.api.admin import JOBS, Admin, Object
from tests.api.kubelet import NODE
from tests.api.lab import admin, served
from tests.api.odh import Odh
from tests.api.running import job
from tests.cluster import Kubectl, eventually
from tests.pages import ROOT
from tools.cluster.spec import Spec

__all__ = ["admin", "served"]

ROLES = Path(__file__).parents[3] / "manifests/roles"
MEASURED = "apis/metrics.k8s.io/v1beta1"
MEBIBYTE = 1 << 20


def definition() -> Object:
    """The metrics API's pods, as far as a client can tell."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "pods.metrics.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": "metrics.k8s.io",
            "names": {"kind": "PodMetrics", "plural": "pods", "singular": "podmetrics"},
            "scope": "Namespaced",
            "versions": [{**version, "schema": {"openAPIV3Schema": anything}}],
        },
    }


@pytest.fixture
def metrics_api(served: Spec) -> Iterator[None]:
    kubectl = Kubectl(served)
    kubectl.apply(definition())
    pods = ("get", "--raw", f"/{MEASURED}/pods")
    eventually("the metrics API", lambda: not kubectl.attempt(*pods).returncode)
    yield
    kubectl("delete", "crd", "pods.metrics.k8s.io")
    eventually("no metrics API", lambda: bool(kubectl.attempt(*pods).returncode))


def labels(name: str, role: str, index: int = 0) -> dict[str, str]:
    return {
        "training.kubeflow.org/job-name": name,
        "training.kubeflow.org/job-role": role,
        "training.kubeflow.org/replica-index": str(index),
    }


def running(admin: Admin, name: str = "pi") -> None:
    """A job with a launcher and two workers that run, as far as the API server knows."""
    admin.create(f"{JOBS}/mpijobs", job(name=name))
    state = [{"type": "Running", "status": "True"}]
    admin.patch(f"{JOBS}/mpijobs/{name}/status", {"status": {"conditions": state}})
    roles = {f"{name}-launcher-x": ("launcher", 0)}
    roles |= {f"{name}-worker-{index}": ("worker", index) for index in range(2)}
    for pod, (role, index) in roles.items():
        spec = {"containers": [{"name": "mpi", "image": "x"}], "nodeName": NODE}
        meta = {"name": pod, "labels": labels(name, role, index)}
        admin.create("api/v1/pods", {"metadata": meta, "spec": spec})
        admin.patch(f"api/v1/pods/{pod}/status", {"status": {"phase": "Running"}})


def measure(admin: Admin, pod: str, *containers: tuple[str, str], of: str = "pi") -> None:
    used = [
        {"name": f"c{number}", "usage": {"cpu": cpu, "memory": memory}}
        for number, (cpu, memory) in enumerate(containers)
    ]
    body: Object = {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "PodMetrics",
        "metadata": {"name": pod, "labels": labels(of, "worker")},
        "window": "15s",
        "containers": used,
    }
    admin.create(f"{MEASURED}/pods", body)


def client(admin: Admin) -> MPIJobClient:
    return MPIJobClient(
        backend=connect(kubeconfig=admin.spec.kubeconfig, namespace=admin.namespace)
    )


def test_figures_are_the_metrics_api_s_and_every_container_counts(
    admin: Admin, metrics_api: None
) -> None:
    running(admin)
    measure(admin, "pi-launcher-x", ("1500000n", "20Mi"))
    measure(admin, "pi-worker-0", ("750m", "1Gi"), ("250m", "24Mi"))
    measure(admin, "pi-worker-1", ("2", "1048576Ki"))
    measure(admin, "other-worker-0", ("64", "1Ti"), of="other")
    metrics = client(admin).metrics("pi")
    found = {pod.pod: (pod.cpus, pod.memory_bytes) for pod in metrics.pods}
    assert found == {
        "pi-launcher-x": (0.0015, 20 * MEBIBYTE),
        "pi-worker-0": (1.0, 1048 * MEBIBYTE),
        "pi-worker-1": (2.0, 1024 * MEBIBYTE),
    }
    assert (metrics.cpus, metrics.memory_bytes) == (3.0015, 2092 * MEBIBYTE)
    assert (metrics.source, metrics.notes) == ("metrics API", ())


def test_odh_top_shows_every_job_that_runs_and_says_which_pods_come_later(
    admin: Admin, metrics_api: None
) -> None:
    running(admin)
    running(admin, "late")
    measure(admin, "pi-launcher-x", ("1m", "20Mi"))
    measure(admin, "pi-worker-0", ("750m", "1Gi"))
    measure(admin, "pi-worker-1", ("not a number", "1Gi"))
    odh = Odh(admin.spec.kubeconfig, admin.namespace)
    shown = odh("top")
    rows = {line.split()[1]: line.split()[2:] for line in shown.stdout.splitlines()[1:]}
    assert rows["pi-worker-0"] == ["0.75", "1024", "MiB"]
    assert rows["pi-worker-1"] == ["-", "1024", "MiB"]
    assert rows["late-worker-1"] == ["-", "-"]
    assert f"3 of 3 pods of {admin.namespace}/late are not measured yet" in shown.stderr
    named = odh.json("mpijob", "top", "pi")
    assert {item["pod"] for item in named["items"]} == {p for p in rows if p.startswith("pi-")}
    assert "not found" in odh("top", "nope", code=2).stderr


def test_a_cluster_without_a_metrics_api_says_so_and_what_helps(admin: Admin) -> None:
    running(admin)
    (first, *_) = client(admin).metrics("pi").notes
    assert "this cluster has no metrics API (metrics.k8s.io)" in first
    assert "install metrics-server" in first
    said = Odh(admin.spec.kubeconfig, admin.namespace)("top").stderr
    assert said.count("no metrics API") == 1


def test_whoever_may_not_read_the_metrics_api_is_told_which_right_and_role(
    admin: Admin, metrics_api: None, tmp_path: Path
) -> None:
    kubectl = Kubectl(admin.spec, admin.namespace)
    kubectl("apply", "-k", str(ROLES))
    running(admin)
    measure(admin, "pi-worker-0", ("1", "1Gi"))
    rules = ("--verb=get,list", "--resource=mpijobs.kubeflow.org,pods")
    kubectl("create", "role", "narrow", *rules)
    narrow = account(kubectl, "narrow")
    whom = f"--serviceaccount={admin.namespace}:narrow"
    kubectl("create", "rolebinding", "narrow", "--role=narrow", whom)
    said = Odh(narrow.kubeconfig(tmp_path), admin.namespace)("mpijob", "top", "pi").stderr
    assert f"may not list pods.metrics.k8s.io in namespace {admin.namespace}" in said
    assert "the role mpijob-viewer has it" in said
    assert "`create` on `pods/exec`" in said
    place = tmp_path / "viewer"
    place.mkdir()
    viewer = account(kubectl, "viewer", "mpijob-viewer").kubeconfig(place)
    found = Odh(viewer, admin.namespace).json("mpijob", "top", "pi")["items"]
    assert {item["pod"]: item["cpus"] for item in found}["pi-worker-0"] == 1.0


def test_a_metrics_api_that_does_not_answer_is_named(admin: Admin, served: Spec) -> None:
    """As where metrics-server is installed and its pod is away."""
    name = "v1beta1.metrics.k8s.io"
    service = {"name": "away", "namespace": admin.namespace}
    spec: Object = {"group": "metrics.k8s.io", "version": "v1beta1", "service": service}
    spec |= {"groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": True}
    path = "/apis/apiregistration.k8s.io/v1/apiservices"
    admin.call("POST", path, {"metadata": {"name": name}, "spec": spec})
    try:
        running(admin)
        pods = f"/{MEASURED}/namespaces/{admin.namespace}/pods"
        eventually("it is asked", lambda: admin.attempt("GET", pods)[0] == 503)
        (first, *_) = client(admin).metrics("pi").notes
        assert "the metrics API does not answer" in first
        assert f"kubectl get apiservice {name}" in first
    finally:
        admin.call("DELETE", f"{path}/{name}")


def test_the_peaks_of_a_job_that_has_ended_are_its_launchers_last_words(admin: Admin) -> None:
    admin.create(f"{JOBS}/mpijobs", job())
    meta = {"name": "pi-launcher-x", "labels": labels("pi", "launcher")}
    spec = {"containers": [{"name": "mpi", "image": "x"}], "nodeName": NODE}
    admin.create("api/v1/pods", {"metadata": meta, "spec": spec})
    words = "mpi-agent 1\nlevel full\nended Command 0\nworld size=1 started=1 ended=1 runs=1\n"
    words += "host pi-worker-0 0 peak=52428800 oom=0\n"
    over = {"terminated": {"exitCode": 0, "message": words}}
    state = {"name": "mpi", "state": over, "ready": False, "restartCount": 0}
    status = {"phase": "Succeeded", "containerStatuses": [{**state, "image": "x", "imageID": ""}]}
    admin.patch("api/v1/pods/pi-launcher-x/status", {"status": status})
    metrics = client(admin).metrics("pi")
    assert (metrics.peak_memory_bytes, metrics.source) == (50 * MEBIBYTE, "the launcher's summary")
    assert "50 MiB" in Odh(admin.spec.kubeconfig, admin.namespace)("top", "pi").stdout


class Exporter(BaseHTTPRequestHandler):
    """A page as NVIDIA's DCGM exporter serves it, and as a Prometheus that reads it passes it on:
    with a time, and with the exporter's own labels in place of those that both have."""

    namespace = ""

    def do_GET(self) -> None:
        if self.path == "/closed":
            self.send_error(403, "closed")
            return
        asked = urlsplit(self.path)
        federated = asked.path == "/federate"
        if federated and parse_qs(asked.query) != {"match[]": ['{__name__=~"DCGM_.*"}']}:
            self.send_error(400, "no match[] parameter that selects DCGM's series")
            return
        given, when = ("exported_", " 1794992940123") if federated else ("", "")
        of = f'{given}namespace="{self.namespace}",{given}pod="pi-worker-1"'
        of = f'UUID="GPU-1",modelName="NVIDIA H200",{of}'
        of += ',instance="10.1.2.3:9400",job="dcgm",namespace="gpu",pod="dcgm-x"' * federated
        page = (
            "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
            f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",{of}}} 93{when}\n'
            f'DCGM_FI_DEV_FB_USED{{gpu="0",{of}}} 40960{when}\n'
            f'DCGM_FI_DEV_FB_FREE{{gpu="0",{of}}} 102400{when}\n'
        ).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: pytest's output is for failures."""


@pytest.fixture
def exporter(admin: Admin) -> Iterator[str]:
    handler = type("OfNamespace", (Exporter,), {"namespace": admin.namespace})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_gpus_are_shown_where_a_dcgm_exporter_tells_of_them(
    admin: Admin, metrics_api: None, exporter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AC-11: no GPU here, so the page is a server's of the test."""
    running(admin)
    measure(admin, "pi-worker-1", ("1", "1Gi"))
    odh = Odh(admin.spec.kubeconfig, admin.namespace)
    shown = odh("top", "pi", "--gpu-metrics", f"{exporter}/metrics").stdout.splitlines()
    assert shown[0].split("  ")[-1] == "GPU MEMORY"
    (row,) = (line for line in shown if "pi-worker-1" in line)
    assert row.endswith("93 %  40960 MiB of 143360 MiB")
    page = (ROOT / "docs/cluster-quickstart.md").read_text()
    (documented,) = re.findall(r"`(/federate\?[^`]*)`", page)
    federated = odh("top", "pi", "--gpu-metrics", f"{exporter}{documented}").stdout.splitlines()
    assert [line for line in federated if "pi-worker-1" in line] == [row]
    monkeypatch.setenv("MPI_TRAINER_GPU_METRICS", f"{exporter}/metrics")
    (gpu,) = (gpu for pod in client(admin).metrics("pi").pods for gpu in pod.gpus)
    assert (gpu.gpu, gpu.model, gpu.percent) == ("GPU-1", "NVIDIA H200", 93.0)


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ("http://127.0.0.1:9/metrics", "read: [Errno 111] Connection refused"),
        ("EXPORTER/closed", "403"),
        ("file:///etc/passwd", "neither an http(s) address nor a path"),
        ("/api/v1/namespaces/gpu/services/dcgm:9400/proxy/metrics", "not found"),
    ],
)
def test_a_page_of_gpu_metrics_that_cannot_be_read_is_named(
    admin: Admin, metrics_api: None, exporter: str, page: str, why: str
) -> None:
    running(admin)
    measure(admin, "pi-worker-1", ("1", "1Gi"))
    page = page.replace("EXPORTER", exporter)
    shown = Odh(admin.spec.kubeconfig, admin.namespace)("top", "pi", "--gpu-metrics", page)
    assert page in shown.stderr and why in shown.stderr
    assert "1.00" in shown.stdout
