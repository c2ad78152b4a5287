"""MIG-3: in the place of a running public MPI operator, by the documented commands.

The jobs that it started run on and end under ours; finished ones stay as they are.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator

import pytest

from tests.cluster import Kubectl, Object, eventually, shared_cluster
from tests.e2e.full.test_peers import SSHD
from tests.e2e.test_install import commands, hosts, let_go, pods, run, start, waiting_job
from tools.cluster import images
from tools.cluster.spec import Spec
from tools.cluster.user_images import USER_IMAGES, build_image

OPERATOR = "mpi-operator"

pytestmark = pytest.mark.timeout(500, func_only=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Spec]:
    """A cluster on which the public operator runs."""
    wanted = Spec(name="test-drop-in", profile="full", nodes=2, addons=("dns", OPERATOR))
    for spec in shared_cluster(wanted):
        names = ("mpi-trainer", "mpi-openmpi")
        images.load(spec, [build_image(USER_IMAGES[name]) for name in names])
        yield spec


@pytest.fixture
def plain(cluster: Spec) -> Iterator[Kubectl]:
    """A namespace without OpenShift's rules: the public operator wants a fixed user id."""
    kubectl = Kubectl(cluster, f"test-{secrets.token_hex(4)}")
    kubectl("create", "namespace", kubectl.namespace)
    yield kubectl
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


def upstream_job(name: str) -> Object:
    """A job as the public operator can run it."""
    job = waiting_job(name)
    specs = job["spec"]["mpiReplicaSpecs"]
    for role in specs.values():
        (container,) = role["template"]["spec"]["containers"]
        container["securityContext"] = {"runAsUser": 1000}
    (worker,) = specs["Worker"]["template"]["spec"]["containers"]
    worker["command"] = SSHD
    worker["readinessProbe"] = {"tcpSocket": {"port": 2222}, "periodSeconds": 1}
    job["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    return job


def failing_job(name: str) -> Object:
    """One whose launcher fails at once, and is tried again by its Job."""
    job = upstream_job(name)
    job["spec"]["runPolicy"] |= {"backoffLimit": 1}
    (launcher,) = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    launcher["command"] = ["sh", "-c", "sleep 2; exit 7"]
    return job


def suspended_job(name: str) -> Object:
    """One that the public operator has prepared, and ours is to run, with its agent."""
    job = waiting_job(name)
    job["spec"]["runPolicy"] |= {"suspend": True}
    return job


def test_jobs_of_the_public_operator_run_on_and_end_under_ours(
    cluster: Spec, plain: Kubectl
) -> None:
    """MIG-3, C-5: finished, running, suspended and failing ones."""
    for name in ("finished", "running"):
        start(plain, upstream_job(name))
    plain.apply(suspended_job("suspended"))
    plain.wait("--for=condition=Suspended", "mpijob/suspended", seconds=60)
    let_go(plain, "finished")
    plain.wait("--for=condition=Succeeded", "mpijob/finished", seconds=90)
    finished, before = plain.get("mpijob", "finished"), pods(plain)
    plain.apply(failing_job("failing"))
    run(
        cluster,
        [line for line in commands("In the place of the public MPI operator") if ">" not in line],
    )
    home = Kubectl(cluster, OPERATOR)
    home("rollout", "status", f"deployment/{OPERATOR}", "--timeout=240s", seconds=250)
    image = home("get", "deployment", OPERATOR, "-o", "jsonpath={..image}")
    assert image == USER_IMAGES["mpi-trainer"].reference
    eventually("ours leads", lambda: "mpi-trainer" in _leader(home), 60)
    assert before.items() <= pods(plain).items()
    plain.wait("--for=condition=Failed", "mpijob/failing", seconds=120)
    _resume(plain, "suspended")
    plain.wait("--for=condition=Running", "mpijob/suspended", seconds=120)
    let_go(plain, "suspended")
    plain.wait("--for=condition=Succeeded", "mpijob/suspended", seconds=90)
    let_go(plain, "running")
    plain.wait("--for=condition=Succeeded", "mpijob/running", seconds=90)
    assert hosts(plain, "running") == ["running-worker-0", "running-worker-1"]
    assert before.items() <= pods(plain).items()
    assert plain.get("mpijob", "finished")["status"] == finished["status"]


def _resume(kubectl: Kubectl, name: str) -> None:
    change = json.dumps({"spec": {"runPolicy": {"suspend": False}}})
    kubectl("patch", "mpijob", name, "--type=merge", f"--patch={change}")


def _leader(home: Kubectl) -> str:
    lease = json.loads(home("get", "lease", OPERATOR, "-o", "json"))
    return str(lease["spec"]["holderIdentity"])
