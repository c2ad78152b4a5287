"""MIG-3: twenty jobs in all states change hands on real nodes, and change back (issue 31).

The public operator is the real one, and so are kubelets, sshd and mpirun. Both ways go by the
documented commands, while other jobs are made and deleted all the time.
"""

from __future__ import annotations

import json
import secrets
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster import Kubectl, Object, eventually, shared_cluster
from tests.e2e.full.test_drop_in import OPERATOR, upstream_job
from tests.e2e.test_install import commands, hosts, let_go, pods, run
from tools.cluster import images
from tools.cluster.build import source_of
from tools.cluster.components import MPI_OPERATOR
from tools.cluster.published import PUBLISHED, rendered
from tools.cluster.report import environment
from tools.cluster.spec import Spec
from tools.cluster.user_images import USER_IMAGES, build_image

STATES = {
    "running": 6, "retrying": 3, "suspended": 4, "succeeded": 3, "failed": 2, "waiting": 1,
    "created": 1,
}  # fmt: skip
"""`waiting`: no node has room for its workers; `created`: no operator had seen it"""
NAMES = [f"{state}-{n}" for state, count in STATES.items() for n in range(count)]
ENDED = ("succeeded", "failed")
WAITS = "until [ -e /tmp/go ]; do sleep 0.2; done; hostname"
SECOND_TRY = f"""
    mpirun -n 2 test -e /tmp/tried || {{ mpirun -n 2 touch /tmp/tried; exit 7; }}
    exec mpirun -n 2 sh -c 'touch /tmp/here; {WAITS}'
"""
"""The first launcher fails; the second finds that on its workers, and waits."""
HEADING = "In the place of the public MPI operator"

pytestmark = pytest.mark.timeout(1500, func_only=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Spec]:
    wanted = Spec(name="test-twenty", profile="full", nodes=2, addons=("dns", OPERATOR))
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


def state_of(name: str) -> str:
    return name.rpartition("-")[0]


def of(*states: str) -> list[str]:
    return [name for name in NAMES if state_of(name) in states]


def job_of(name: str) -> Object:
    """A job that the public operator brings into the state."""
    job = upstream_job(name)
    specs, policy = job["spec"]["mpiReplicaSpecs"], job["spec"]["runPolicy"]
    (launcher,) = specs["Launcher"]["template"]["spec"]["containers"]
    (worker,) = specs["Worker"]["template"]["spec"]["containers"]
    state = state_of(name)
    # Without our agent a launcher fails and is tried again until its workers' names are known.
    policy |= {"backoffLimit": 0 if state == "failed" else 6}
    if state == "retrying":
        launcher["command"] = ["sh", "-c", SECOND_TRY]
    elif state == "suspended":
        policy |= {"suspend": True}
    elif state == "failed":
        launcher["command"] = ["sh", "-c", "exit 7"]
    elif state == "waiting":
        worker["resources"] = {"requests": {"cpu": "1000"}}
    return job


def is_there(namespace: Kubectl, name: str, file: str) -> bool:
    """Whether both ranks have made a file in their workers."""
    return all(
        not namespace.run_in(f"{name}-worker-{index}", "test", "-e", file).returncode
        for index in range(2)
    )


def start_all(namespace: Kubectl) -> None:
    """Each job into its state, under the public operator."""
    namespace.apply(*(job_of(name) for name in NAMES if state_of(name) != "created"))
    for name in of("running", "retrying", "succeeded"):
        eventually(name, lambda name=name: is_there(namespace, name, "/tmp/here"), 240)  # type: ignore[misc]
    for name in of("succeeded"):
        let_go(namespace, name)
    for state, condition in (
        ("succeeded", "Succeeded"), ("failed", "Failed"), ("suspended", "Suspended"),
        ("running", "Running"), ("retrying", "Running"), ("waiting", "Created"),
    ):  # fmt: skip
        jobs = [f"mpijob/{name}" for name in of(state)]
        namespace.wait(f"--for=condition={condition}", *jobs, seconds=120)


def jobs(namespace: Kubectl) -> dict[str, Object]:
    found = namespace.read("apis/kubeflow.org/v2beta1/mpijobs")["items"]
    return {job["metadata"]["name"]: job for job in found if job["metadata"]["name"] in NAMES}


def held(namespace: Kubectl) -> dict[str, set[str]]:
    """The conditions that hold, by job."""
    return {
        name: {
            c["type"] for c in job.get("status", {}).get("conditions", ()) if c["status"] == "True"
        }
        for name, job in jobs(namespace).items()
    }


def results(namespace: Kubectl) -> dict[str, Object]:
    return {name: job["status"] for name, job in jobs(namespace).items() if state_of(name) in ENDED}


def of_ours(found: dict[str, tuple[str, int]]) -> dict[str, tuple[str, int]]:
    """The pods of the twenty, not those of the jobs that come and go."""
    return {pod: told for pod, told in found.items() if pod.startswith(tuple(NAMES))}


def started(found: dict[str, tuple[str, int]]) -> dict[str, tuple[str, int]]:
    """Without workers that never ran and have no launcher: those are made anew, with our agent."""
    return {pod: told for pod, told in found.items() if not pod.startswith("waiting-")}


@contextmanager
def load(namespace: Kubectl) -> Iterator[list[int]]:
    """Two jobs a second are made and deleted beside, until the end; how many it were."""
    stop, done = threading.Event(), [0]

    def come_and_go() -> None:
        while not stop.wait(0.5) and done[0] < 2000:
            name = f"passing-{done[0]}"
            job = upstream_job(name)
            job["spec"]["runPolicy"] |= {"suspend": True}
            namespace.apply(job)
            namespace("delete", "mpijob", name, "--wait=false")
            done[0] += 1

    thread = threading.Thread(target=come_and_go, daemon=True)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join(60)


def resume(namespace: Kubectl, name: str) -> None:
    change = json.dumps({"spec": {"runPolicy": {"suspend": False}}})
    namespace("patch", "mpijob", name, "--type=merge", f"--patch={change}")
    eventually(name, lambda: is_there(namespace, name, "/tmp/here"), 180)


def succeeds(namespace: Kubectl, name: str) -> None:
    """Its ranks are let go; both workers have taken part."""
    let_go(namespace, name)
    namespace.wait("--for=condition=Succeeded", f"mpijob/{name}", seconds=120)


def public_manifests(cluster: Spec, folder: Path) -> Path:
    """What the public project publishes, as the cluster had it before."""
    source = source_of(MPI_OPERATOR)
    kubectl = shutil.which("kubectl", path=environment(cluster)["PATH"])
    assert kubectl
    objects = rendered(Path(kubectl), source, PUBLISHED[OPERATOR])
    file = folder / "mpi-operator.yaml"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return file


def test_twenty_jobs_change_hands_and_back_under_load(
    cluster: Spec, plain: Kubectl, tmp_path: Path
) -> None:
    assert len(NAMES) == 20
    home = Kubectl(cluster, OPERATOR)
    start_all(plain)
    with load(plain) as passed:
        home("scale", f"deployment/{OPERATOR}", "--replicas=0")
        home.wait("--for=delete", "pod", f"--selector=app={OPERATOR}", seconds=60)
        plain.apply(job_of("created-0"))
        before, states, ended = of_ours(pods(plain)), held(plain), results(plain)
        run(cluster, [line for line in commands(HEADING) if ">" not in line])
        home("rollout", "status", f"deployment/{OPERATOR}", "--timeout=240s", seconds=250)
        eventually("ours leads", lambda: "mpi-trainer" in leader(home), 120)
        eventually("ours has begun one", lambda: is_there(plain, "created-0", "/tmp/here"), 180)
        assert started(before).items() <= of_ours(pods(plain)).items()
        assert lost(states, held(plain)) == {}
        assert results(plain) == ended
        resume(plain, "suspended-0")
        for name in ("running-0", "retrying-0"):
            succeeds(plain, name)
        taken_over = passed[0]

        between, states, ended = of_ours(pods(plain)), held(plain), results(plain)
        assert started(before).items() <= between.items()
        theirs = public_manifests(cluster, tmp_path)
        back = [line.replace(theirs.name, str(theirs)) for line in commands(HEADING, 1)]
        run(cluster, back)
        home("rollout", "status", f"deployment/{OPERATOR}", "--timeout=240s", seconds=250)
        eventually("theirs leads", lambda: leader(home).startswith(OPERATOR), 120)
        resume(plain, "suspended-1")
        assert between.items() <= of_ours(pods(plain)).items()
        assert lost(states, held(plain)) == {"suspended-1": {"Suspended"}}
        assert results(plain) == ended
        for name in ("running-1", "retrying-1", "suspended-0", "suspended-1", "created-0"):
            succeeds(plain, name)
        assert between.items() <= of_ours(pods(plain)).items()
        assert hosts(plain, "suspended-0") == ["suspended-0-worker-0", "suspended-0-worker-1"]
        assert results(plain) == ended
    print(f"\n{taken_over} jobs passed while taken over, {passed[0] - taken_over} while given back")
    assert passed[0] > taken_over > 0


def lost(before: dict[str, set[str]], now: dict[str, set[str]]) -> dict[str, set[str]]:
    """The conditions that no longer hold, by job."""
    return {name: kinds - now[name] for name, kinds in before.items() if kinds - now[name]}


def leader(home: Kubectl) -> str:
    lease = json.loads(home("get", "lease", OPERATOR, "-o", "json"))
    return str(lease["spec"].get("holderIdentity") or "")
