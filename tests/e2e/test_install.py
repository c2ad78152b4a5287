"""What docs/install.md tells people to type: install, upgrade, uninstall, install again.

On a cluster of its own, since it brings and takes the controller that other tests share.
"""

from __future__ import annotations

import http
import io
import json
import shlex
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpi_trainer.server.rpc.v1 import mpijobs_pb2 as v1
from tests.api.accounts import account
from tests.api.admin import JOBS, Admin
from tests.cluster import Kubectl, Object, eventually, shared_cluster
from tests.e2e.server import deployed
from tests.live_reader import LiveReader
from tests.pages import shell_blocks
from tests.rest import Rest
from tests.rpc import Rpc
from tools.cluster import images
from tools.cluster.report import environment
from tools.cluster.spec import Spec
from tools.cluster.user_images import USER_IMAGES, build_image

ROOT = Path(__file__).parents[2]
PAGE = "docs/install.md"
HOME = "mpi-trainer"
SELECTOR = "app.kubernetes.io/component=controller"
NEXT = "localhost/mpi-trainer:next"

pytestmark = pytest.mark.timeout(900, func_only=True)


def commands(heading: str, block: int = 0) -> list[str]:
    """The lines of one block of commands under a heading of the page."""
    return shell_blocks(PAGE, heading)[block].splitlines()


def run(spec: Spec, lines: list[str]) -> str:
    """Run each line as it stands; the last one's output."""
    output = ""
    for line in lines:
        answer = subprocess.run(
            shlex.split(line),
            cwd=ROOT,
            env=environment(spec),
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert answer.returncode == 0, f"{line}: {answer.stderr}{_state(spec)}"
        output = answer.stdout
    return output


def _state(spec: Spec) -> str:
    kubectl = Kubectl(spec, HOME)
    shown = [
        kubectl.attempt("get", "pods,events").stdout,
        kubectl.attempt("logs", "--tail=20", f"--selector={SELECTOR}").stdout,
        Kubectl(spec).attempt("get", "pods,mpijobs", "-o", "wide").stdout,
    ]
    return "\n" + "\n".join(shown)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Spec]:
    """Two real nodes with cluster DNS and OpenShift's SCC, and our images."""
    wanted = Spec(name="test-install", profile="full", nodes=2, addons=("dns", "scc"))
    for spec in shared_cluster(wanted):
        archives = [build_image(USER_IMAGES[name]) for name in ("mpi-trainer", "mpi-openmpi")]
        images.load(spec, archives)
        yield spec


@pytest.fixture
def installed(cluster: Spec) -> Spec:
    run(cluster, commands("Install"))
    return cluster


def waiting_job(name: str) -> Object:
    """Two ranks on two workers that wait until somebody lets them go."""
    image = USER_IMAGES["mpi-openmpi"].reference
    rank = "touch /tmp/here; until [ -e /tmp/go ]; do sleep 0.2; done; hostname"
    launcher = {"name": "mpi", "image": image, "command": ["mpirun", "-n", "2", "sh", "-c", rank]}
    worker = {"name": "mpi", "image": image}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "sshAuthMountPath": "/home/mpiuser/.ssh",
            "runPolicy": {"backoffLimit": 0, "cleanPodPolicy": "None"},
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": {"spec": {"containers": [launcher]}}},
                "Worker": {"replicas": 2, "template": {"spec": {"containers": [worker]}}},
            },
        },
    }


def let_go(namespace: Kubectl, name: str) -> None:
    for index in range(2):
        assert namespace.run_in(f"{name}-worker-{index}", "touch", "/tmp/go").returncode == 0


def pods(namespace: Kubectl) -> dict[str, tuple[str, int]]:
    """Each pod's uid, and how often its containers were started again."""
    found = json.loads(namespace("get", "pods", "-o", "json"))["items"]
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["uid"],
            sum(c["restartCount"] for c in pod["status"].get("containerStatuses", [])),
        )
        for pod in found
    }


def start(namespace: Kubectl, job: Object) -> None:
    """Returns once both ranks run, not only their pods."""
    name = job["metadata"]["name"]
    namespace.apply(job)
    namespace.wait("--for=condition=Running", f"mpijob/{name}", seconds=120)
    for index in range(2):
        here = (f"{name}-worker-{index}", "test", "-e", "/tmp/here")
        eventually("rank", lambda here=here: not namespace.run_in(*here).returncode, 60)  # type: ignore[misc]


def hosts(namespace: Kubectl, name: str) -> list[str]:
    lines = namespace("logs", f"job/{name}-launcher").splitlines()
    return sorted(line for line in lines if line.startswith(f"{name}-worker-"))


def test_the_documented_commands_install_and_run_a_job(installed: Spec) -> None:
    """Shows 7; CTL-3: both replicas are ready, as random user ids, unable to write anywhere."""
    run(installed, commands("Install", 1))
    kubectl = Kubectl(installed)
    header, row = kubectl("get", "mpijob", "hello").splitlines()
    assert header.split()[:2] == ["NAME", "STATE"]
    assert row.split()[:2] == ["hello", "Succeeded"]
    kubectl("delete", "-f", str(ROOT / "examples" / "hello" / "mpijob.yaml"))
    home = Kubectl(installed, HOME)
    both = json.loads(home("get", "pods", f"--selector={SELECTOR}", "-o", "json"))["items"]
    assert len({pod["spec"]["nodeName"] for pod in both}) == 2
    assert home("get", "pdb", "mpi-trainer", "-o", "jsonpath={.status.disruptionsAllowed}") == "1"
    name = both[0]["metadata"]["name"]
    assert "Read-only" in home.run_in(name, "sh", "-c", "touch /opt/x /tmp/x").stderr


def test_the_image_runs_under_openshift_s_rules_as_a_random_user(namespace: Kubectl) -> None:
    """CTL-7: the namespace's range gives the user id; the root file system cannot be written."""
    container = {
        "name": "c",
        "image": USER_IMAGES["mpi-trainer"].reference,
        "args": ["--help"],
        "securityContext": {"readOnlyRootFilesystem": True},
    }
    spec = {"containers": [container], "restartPolicy": "Never"}
    namespace.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "help"}, "spec": spec})
    namespace.wait("--for=jsonpath={.status.phase}=Succeeded", "pod/help", seconds=180)
    assert "--lock-namespace" in namespace("logs", "help")
    context = namespace.get("pod", "help")["spec"]["containers"][0]["securityContext"]
    user = context.get("runAsUser") or namespace.get("pod", "help")["spec"]["securityContext"]
    assert "1000740000" in json.dumps(user)


@pytest.mark.full
def test_the_server_s_pods_serve_jobs_over_rest_and_grpc(
    installed: Spec, namespace: Kubectl, tmp_path: Path
) -> None:
    """SC-004, by its manifests and image; the rest is in tests/e2e/full/test_server.py."""
    job = waiting_job("served")
    about: Any = {"namespace": namespace.namespace, "name": "served"}
    with deployed(namespace, tmp_path) as ports:
        token = account(namespace, "scientist", "mpijob-user").token
        rest, rpc = Rest(ports.rest, token), Rpc(ports.rpc, token)
        jobs = f"/api/v1/namespaces/{namespace.namespace}/mpijobs"
        assert Rest(ports.rest).ask("POST", jobs, job).status == 401
        assert rest.ask("POST", jobs, job).status == 201
        namespace.wait("--for=condition=Running", "mpijob/served", seconds=120)
        request = v1.GetMPIJobLogsRequest(**about, follow=True)
        with LiveReader(rest, f"{jobs}/served/logs/live") as reader, ThreadPoolExecutor(1) as pool:
            followed = pool.submit(rpc.ask, "GetMPIJobLogs", request, 200)
            eventually("both ranks run", lambda: _here(namespace, "served"), 60)
            let_go(namespace, "served")
            reader.next("end", seconds=150)
            batches = [one.data["items"] for one in reader.heard if one.event == "lines"]
            by_rest = sorted(line["text"] for batch in batches for line in batch)
            by_rpc = sorted(line.text for answer in followed.result(60) for line in answer.lines)
        hosts = ["served-worker-0", "served-worker-1"]
        assert [line for line in by_rest if line in hosts] == hosts, by_rest
        assert by_rpc == by_rest
        assert rpc.ask("GetMPIJob", v1.GetMPIJobRequest(**about)).state == v1.JOB_STATE_SUCCEEDED
        rpc.ask("DeleteMPIJob", v1.DeleteMPIJobRequest(**about))
        eventually("it is gone", lambda: rest.ask("GET", f"{jobs}/served").status == 404)


def _here(namespace: Kubectl, name: str) -> bool:
    return not any(
        namespace.run_in(f"{name}-worker-{index}", "test", "-e", "/tmp/here").returncode
        for index in range(2)
    )


def try_jobs(admin: Admin, stop: threading.Event, answers: list[tuple[int, bytes]]) -> None:
    """Creates one job after the other, as tries, and keeps what was said. Not by kubectl, which
    takes more of the machine than the pods that are replaced meanwhile."""
    job = json.dumps(waiting_job("tried")).encode()
    while not stop.wait(0.05):
        answers.append(admin.attempt("POST", f"{JOBS}/mpijobs?dryRun=All", job))


def test_admission_refuses_at_the_door_and_misses_nobody_while_its_pods_are_replaced(
    installed: Spec, namespace: Kubectl
) -> None:
    """CTL-4"""
    run(installed, commands("Admission"))
    try:
        bad = waiting_job("bad")
        bad["spec"]["slotsPerWorker"] = 0
        said = namespace.attempt("create", "-f", "-", data=json.dumps(bad)).stderr
        assert "spec.slotsPerWorker: Invalid value: 0: must be at least 1" in said
        home, stop, answers = Kubectl(installed, HOME), threading.Event(), list[tuple[int, bytes]]()
        admin = Admin(installed, namespace.namespace)
        asking = threading.Thread(target=try_jobs, args=(admin, stop, answers))
        asking.start()
        try:
            selector = "--selector=app.kubernetes.io/component=webhook"
            for pod in home("get", "pods", selector, "-o", "name").split():
                home("delete", pod, seconds=180)
                home(
                    "rollout",
                    "status",
                    "deployment/mpi-trainer-webhook",
                    "--timeout=180s",
                    seconds=190,
                )
        finally:
            stop.set()
            asking.join(60)
            admin.close()
        assert len(answers) > 20
        assert [said for said in answers if said[0] != http.HTTPStatus.CREATED] == []
    finally:
        run(installed, commands("Admission", 1))


def test_an_upgrade_leaves_a_running_job_alone(
    installed: Spec, namespace: Kubectl, tmp_path: Path
) -> None:
    """Shows 7: other pods of the controller, the same pods of the job."""
    start(namespace, waiting_job("steady"))
    before = pods(namespace)
    home = Kubectl(installed, HOME)
    old = set(pods(home))
    next_version = _next_version(installed, tmp_path)
    lines = [
        line.replace("manifests/overlays/kubernetes", next_version) for line in commands("Upgrade")
    ]
    run(installed, lines)
    eventually("new pods only", lambda: not old & set(pods(home)), 60)
    assert home("get", "deployment", HOME, "-o", "jsonpath={..image}") == NEXT
    assert pods(namespace) == before
    let_go(namespace, "steady")
    namespace.wait("--for=condition=Succeeded", "mpijob/steady", seconds=180)
    assert hosts(namespace, "steady") == ["steady-worker-0", "steady-worker-1"]
    assert pods(namespace) == before


def _next_version(spec: Spec, folder: Path) -> str:
    """An overlay over ours with another image; the image is the same under another name."""
    archive = folder / "next.tar"
    _renamed(build_image(USER_IMAGES["mpi-trainer"]), archive)
    images.load(spec, [archive])
    name, tag = NEXT.split(":")
    own = folder / "next"
    own.mkdir()
    base = Path(*[".."] * (len(own.parts) - 1)) / ROOT.relative_to("/")
    overlay = {
        "resources": [str(base / "manifests/overlays/kubernetes")],
        "images": [{"name": name, "newTag": tag}],
    }
    (own / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    return str(own)


def _renamed(archive: Path, target: Path) -> None:
    with tarfile.open(archive) as old, tarfile.open(target, "w") as new:
        for entry in old.getmembers():
            content = old.extractfile(entry)
            if entry.name == "manifest.json" and content:
                (image,) = json.load(content)
                data = json.dumps([{**image, "RepoTags": [NEXT]}]).encode()
                entry.size, content = len(data), io.BytesIO(data)
            if entry.name != "repositories":
                new.addfile(entry, content)


def test_uninstalling_keeps_jobs_and_a_new_install_adopts_them(
    installed: Spec, namespace: Kubectl
) -> None:
    """Shows 7: one job ends while nobody looks, the other one after the new install."""
    for name in ("ended", "running"):
        start(namespace, waiting_job(name))
    before = pods(namespace)
    run(installed, commands("Uninstall"))
    assert Kubectl(installed).attempt("get", "namespace", HOME).returncode
    assert not _held(namespace), "nothing that could not be deleted"
    let_go(namespace, "ended")
    ended = "--for=jsonpath={.status.succeeded}=1"
    namespace.wait(ended, "job/ended-launcher", seconds=180)
    assert pods(namespace) == before
    run(installed, commands("Install"))
    namespace.wait("--for=condition=Succeeded", "mpijob/ended", seconds=180)
    assert "Running" in namespace("get", "mpijob", "running")
    assert pods(namespace) == before
    let_go(namespace, "running")
    namespace.wait("--for=condition=Succeeded", "mpijob/running", seconds=180)
    assert hosts(namespace, "running") == ["running-worker-0", "running-worker-1"]
    assert pods(namespace) == before


def _held(namespace: Kubectl) -> list[str]:
    """Pods with a finalizer that only a controller of MPIJobs takes away."""
    found = json.loads(namespace("get", "pods", "-o", "json"))["items"]
    return [
        pod["metadata"]["name"]
        for pod in found
        if any("mpi-trainer" in one for one in pod["metadata"].get("finalizers", []))
    ]
