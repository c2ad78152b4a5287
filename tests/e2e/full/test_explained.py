"""Failures on real nodes are explained (SC-006): cause, rank, host, remedy, and in time.

Every fault is a job of its own in a namespace of its own; a few run side by side, those that harm
a node one after the other at the end. What was found is kept for docs/faults.md.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mpi_trainer.diagnose.finding import Finding
from tests.api.odh import Odh
from tests.api.running import Controller
from tests.cluster import ADDONS, Kubectl, eventually, restricted, shared_cluster
from tests.e2e.kueue import PATIENCE, open_queue, queue, submitted
from tests.e2e.manifests import Object
from tests.e2e.operator import Running, mpijob, submit
from tests.e2e.test_trainjob import OURS
from tests.faults.results import keep_entry
from tools.cluster.spec import Spec

AT_ONCE = int(os.environ.get("AT_ONCE", "3"))
GONE = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
SMALL = {"resources": {"requests": {"cpu": "20m", "memory": "32Mi"}}}
LIMITED = {"resources": {"requests": {"memory": "64Mi"}, "limits": {"memory": "192Mi"}}}
HURRIED = {"annotations": {f"{OURS}/wait-seconds": "10"}}
SOON = {"schedulingPolicy": {"scheduleTimeoutSeconds": 30}}

BEGIN = """\
import os, sys, time
from mpi4py import MPI
world = MPI.COMM_WORLD
world.Barrier()
print("rank", world.rank, "of", world.size, "runs", flush=True)
"""
WORKS = BEGIN + "while world.allreduce(1) and not os.path.exists('/tmp/go'): time.sleep(0.1)\n"
GROWS = (
    BEGIN + "hold = [bytearray(8 << 20) for _ in range(1000) if world.rank == 1]\nworld.Barrier()\n"
)
RAISES = BEGIN + "assert world.rank != 1, 'no such column: price'\nworld.Barrier()\n"
WRITES = (
    BEGIN + "world.rank == 1 and open('/data/x', 'wb').write(bytes(8 << 20))\nworld.Barrier()\n"
)
LOADS = BEGIN + "import ctypes\nworld.rank == 1 and ctypes.CDLL('libmpi.so.12')\nworld.Barrier()\n"
KILL = """\
import os, signal, sys
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        words = open(f"/proc/{pid}/cmdline").read().split("\\0")
    except OSError:
        continue
    if int(pid) != os.getpid() and os.path.basename(words[0]) in sys.argv[1:]:
        os.kill(int(pid), signal.SIGKILL)
        print(pid)
"""

__all__ = ["queue"]

pytestmark = pytest.mark.timeout(1200, func_only=True)
Image = Callable[[str], str]
Harm = Callable[["Place"], None]


class Place(msgspec.Struct, frozen=True):
    """Where one fault happens: a namespace, and the job in it."""

    home: Kubectl
    cluster: Spec
    job: Running

    @property
    def victim(self) -> str:
        return f"{self.job.name}-worker-1"


class Fault(msgspec.Struct, frozen=True):
    """`command` and `changes` make the job, `others` are applied before it; `harm` comes when its
    ranks run. `rank` and `host` are what must be named; `{victim}` is worker 1, `""` nobody."""

    what: str
    causes: tuple[str, ...]
    program: str = WORKS
    command: tuple[str, ...] = ()
    changes: Mapping[str, Any] = {}
    others: tuple[Object, ...] = ()
    harm: Harm | None = None
    rank: int | None = None
    host: str = ""
    seconds: float = 120.0
    image: str = ""
    worker_image: str = ""


class Told(msgspec.Struct, frozen=True):
    seconds: float
    first: Finding
    condition: str
    described: str


# --- what is done to a job that runs --------------------------------------------------------------


def kill(*names: str) -> Harm:
    def harm(place: Place) -> None:
        answer = place.home.run_in(place.victim, "python3", "-c", KILL, *names)
        assert answer.stdout, answer.stderr

    return harm


def delete(place: Place) -> None:
    place.home("delete", "pod", place.victim, "--wait=false")


def evict(place: Place) -> None:
    name = {"name": place.victim, "namespace": place.home.namespace}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": name}
    path = f"/api/v1/namespaces/{place.home.namespace}/pods/{place.victim}/eviction"
    place.home("create", "--raw", path, "-f", "-", data=json.dumps(eviction))


def cut_link(place: Place) -> None:
    """As when a cable breaks: packets vanish, and nobody says so."""
    pid = next(_processes_of(place.victim))
    command = ["nsenter", f"--target={pid}", "--net", "ip", "link", "set", "eth0", "down"]
    subprocess.run(command, check=True, timeout=10)


def _processes_of(pod: str) -> Iterator[int]:
    for folder in Path("/proc").iterdir():
        with suppress(OSError):  # it has just ended
            if (
                folder.name.isdecimal()
                and (folder / "root/etc/hostname").read_text().strip() == pod
            ):
                yield int(folder.name)


def stop_node(place: Place) -> None:
    """The cable of the node of worker 1, which is node 3."""
    link = place.cluster.addresses.node(3).link
    subprocess.run(["ip", "link", "set", link, "down"], check=True, timeout=10)


def start_node(cluster: Spec) -> None:
    node = cluster.addresses.node(3)
    subprocess.run(["ip", "link", "set", node.link, "up"], check=True, timeout=10)
    route = ["ip", "route", "replace", node.pods, "via", node.address]
    subprocess.run(route, check=True, timeout=10)
    eventually("it is back", lambda: _ready(cluster), 120)


def _ready(cluster: Spec) -> bool:
    path = '-o=jsonpath={.status.conditions[?(@.type=="Ready")].status}'
    return Kubectl(cluster).attempt("get", "node", "node3", path).stdout == "True"


# --- objects -------------------------------------------------------------------------------------


def policy(name: str, **spec: Any) -> Object:
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


WORKERS = {"matchLabels": {"training.kubeflow.org/job-role": "worker"}}
NO_SSH = policy("no-ssh", podSelector=WORKERS, policyTypes=["Ingress"], ingress=[])
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "few"},
    "spec": {"hard": {"pods": "1"}},
}
NOWHERE = {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["192.0.2.53"]}}
IMPATIENT = {
    "tolerations": [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}
        for key in GONE
    ]
}


def on_node(*indices: int) -> Object:
    """Workers apart on these nodes."""
    names = [f"node{index}" for index in indices]
    where = {"key": "kubernetes.io/hostname", "operator": "In", "values": names}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = {"nodeSelectorTerms": [{"matchExpressions": [where]}]}
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": WORKERS}
    return {"affinity": {"nodeAffinity": {required: terms}, "podAntiAffinity": {required: [apart]}}}


DISK = {
    "volumes": [{"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}],
}
MOUNTED = {**SMALL, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "none"}}]}
SECRET = {"envFrom": [{"secretRef": {"name": "none"}}]}

FAULTS: dict[str, Fault] = {
    "exception": Fault(
        "an exception on rank 1 while the other waits",
        ("ProgramException",),
        RAISES,
        rank=1,
        host="{victim}",
    ),
    "oom": Fault(
        "rank 1 passes its worker's memory limit",
        ("OutOfMemory",),
        GROWS,
        changes={"container": LIMITED},
        rank=1,
        host="{victim}",
    ),
    "disk-full": Fault(
        "rank 1 fills a volume",
        ("DiskFull",),
        WRITES,
        changes={"container": MOUNTED, "worker": DISK, "launcher": DISK},
        rank=1,
        host="{victim}",
    ),
    "wrong-library": Fault(
        "rank 1 loads the library of another MPI, which the image lacks",
        ("MpiLibraryMissing",),
        LOADS,
        rank=1,
        host="{victim}",
    ),
    "wrong-image": Fault(
        "the workers' image has another MPI than the launcher's",
        ("MpiMissingOnWorker",),
        worker_image="mpi-mpich",
    ),
    "rank-killed": Fault(
        "rank 1 gets SIGKILL",
        ("RankKilled",),
        harm=kill("python3"),
        rank=1,
        host="{victim}",
    ),
    "daemon-killed": Fault(
        "the MPI daemon of worker 1 gets SIGKILL",
        ("WorkerLost", "MpiDaemonFailed"),
        harm=kill("orted"),
        host="{victim}",
    ),
    "pod-deleted": Fault(
        "somebody deletes worker 1", ("PodDeleted",), harm=delete, host="{victim}"
    ),
    "evicted": Fault(
        "worker 1 is evicted, as by a drain", ("Evicted",), harm=evict, host="{victim}"
    ),
    "deadline": Fault(
        "activeDeadlineSeconds is reached",
        ("TimeLimit",),
        changes={"policy": {"activeDeadlineSeconds": 40}},
        seconds=100,
    ),
    "program-misspelt": Fault(
        "the program does not exist",
        ("ProgramNotFound",),
        command=("mpirun", "-n", "2", "pyhton", "train.py"),
    ),
    "image-missing": Fault(
        "the image does not exist",
        ("ImagePullFailed",),
        changes={"policy": SOON},
        image="localhost/no-such-image:1",
        seconds=90,
    ),
    "no-room": Fault(
        "no node has that many CPUs",
        ("NoNodeFits",),
        changes={"policy": SOON, "container": {"resources": {"requests": {"cpu": "1000"}}}},
        seconds=90,
    ),
    "quota": Fault(
        "the namespace's quota has room for one pod",
        ("QuotaExceeded",),
        changes={"policy": SOON},
        others=(QUOTA,),
        seconds=90,
    ),
    "claim-missing": Fault(
        "a claim does not exist",
        ("VolumeFailed", "NoNodeFits"),
        changes={"policy": SOON, "worker": CLAIM},
        seconds=90,
    ),
    "secret-missing": Fault(
        "a Secret that the workers name does not exist",
        ("ContainerStartFailed",),
        changes={"policy": SOON, "container": {**SMALL, **SECRET}},
        seconds=90,
    ),
    "dns-off": Fault(
        "the launcher's name server does not answer",
        ("NameResolution",),
        changes={"launcher": NOWHERE, "metadata": HURRIED},
        seconds=150,
    ),
    "ssh-blocked": Fault(
        "a NetworkPolicy lets nobody reach the workers",
        ("SshConnectionRefused", "WorkerUnreachable"),
        changes={"metadata": HURRIED, "policy": {"activeDeadlineSeconds": 60}},
        others=(NO_SSH,),
        host="worker",
        seconds=150,
    ),
    "link-cut": Fault(
        "worker 1 loses its network, and nobody is told",
        ("WorkerLost", "WorkerUnreachable"),
        harm=cut_link,
        host="{victim}",
    ),
}
LAST: dict[str, Fault] = {
    "node-stopped": Fault(
        "the node of worker 1 is gone",
        ("NodeLost", "WorkerLost"),
        harm=stop_node,
        host="{victim}",
        changes={
            "launcher": {"nodeSelector": {"kubernetes.io/hostname": "node1"}, **IMPATIENT},
            "worker": {**on_node(2, 3), **IMPATIENT},
        },
        seconds=90,
    ),
}


# --- how each is run -----------------------------------------------------------------------------


@pytest.fixture(scope="session")
def cluster() -> Iterator[Spec]:
    """A cluster of its own, since a node of it is harmed."""
    yield from shared_cluster(Spec(name="test-explained", profile="full", addons=ADDONS))


@pytest.fixture(scope="module")
def told(
    request: pytest.FixtureRequest, operator: Controller, cluster: Spec, image: Image
) -> Iterator[dict[str, Future[Told]]]:
    """What each fault that was chosen leads to, a few at once."""
    image("mpi-openmpi")
    items = (item for item in request.session.items if isinstance(item, pytest.Function))
    chosen = {item.callspec.params.get("name") for item in items if hasattr(item, "callspec")}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            name: pool.submit(_told, cluster, image, name, fault)
            for name, fault in FAULTS.items()
            if name in chosen
        }


def _told(cluster: Spec, image: Image, name: str, fault: Fault) -> Told:
    home = Kubectl(cluster, f"test-{name}-{secrets.token_hex(3)}")
    home.apply(restricted(home.namespace), *fault.others)
    try:
        return _run(Place(home, cluster, Running(home, name)), image, fault)
    finally:
        home("delete", "namespace", home.namespace, "--wait=false")


def _run(place: Place, image: Image, fault: Fault) -> Told:
    name = place.job.name
    job = _job(name, image, fault)
    began = time.monotonic()
    submit(place.home, job)
    if fault.harm is not None:
        place.job.until("Running", 300)
        eventually("its ranks run", lambda: "rank 1 of 2 runs" in place.job.log(), 120)
        began = time.monotonic()
        fault.harm(place)
    failed = place.job.until("Failed", 300)
    seconds = time.monotonic() - began
    odh = Odh(place.cluster.kubeconfig, place.home.namespace)
    found = msgspec.convert(odh.json("mpijob", "explain", name)["findings"], tuple[Finding, ...])
    assert found, (failed, place.job.story())
    page = odh("mpijob", "describe", name).stdout
    return Told(seconds, found[0], failed["message"], page)


def _job(name: str, image: Image, fault: Fault) -> Object:
    reference = fault.image or image("mpi-openmpi")
    run = ("mpirun", "--bind-to", "none", "-n", "2", "python3", "-c", fault.program)
    changes = {"container": SMALL, **fault.changes}
    job = mpijob(name, reference, fault.command or run, slots=1, **changes)
    if fault.worker_image:
        worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
        worker["image"] = image(fault.worker_image)
    return job


def explained(name: str, fault: Fault, told: Told) -> None:
    """Keeps what was said, and checks it."""
    host = fault.host.format(victim=f"{name}-worker-1")
    first = told.first
    ok = {
        "the cause is right": first.cause in fault.causes,
        "the rank is right": first.ranks[:1] == ((fault.rank,) if fault.rank is not None else ())
        or (fault.rank is None and (not host or first.ranks[:1] == (1,))),
        "the host is right": host in (first.hosts[:1] or ("",))[0] if host else True,
        "there is a remedy": bool(first.remedy),
        "it was told in time": told.seconds <= fault.seconds,
        "the condition tells it": first.cause in told.condition,
        "describe begins with it": told.described.startswith(f"{first.cause}: "),
    }
    entry = {
        "what": fault.what,
        "seconds": round(told.seconds, 1),
        "cause": first.cause,
        "ranks": list(first.ranks),
        "hosts": [re.sub(rf"^{name}-", "", one) for one in first.hosts],
        "right": all(ok.values()),
    }
    keep_entry("cluster", name, "nodes", entry)
    assert all(ok.values()), (ok, told)


@pytest.mark.parametrize("name", FAULTS)
def test_a_failure_on_nodes_is_explained(told: dict[str, Future[Told]], name: str) -> None:
    explained(name, FAULTS[name], told[name].result())


def test_a_job_that_gave_way_is_explained(queue: Kubectl, cluster: Spec) -> None:
    """Kueue suspends it for a more important one; nothing of it has failed."""
    open_queue(queue)
    low = submitted(queue, "mpijob", "low", "low")
    eventually("it runs", low.runs, PATIENCE)
    began = time.monotonic()
    submitted(queue, "mpijob", "high", "high")
    eventually("it gives way", low.rests, PATIENCE)
    seconds = time.monotonic() - began
    odh = Odh(cluster.kubeconfig, queue.namespace)
    found = msgspec.convert(odh.json("mpijob", "explain", "low")["findings"], tuple[Finding, ...])
    assert found and found[0].cause == "Preempted" and found[0].remedy, found
    keep_entry(
        "cluster",
        "preempted",
        "nodes",
        {
            "what": "Kueue takes the place of a job for a more important one",
            "seconds": round(seconds, 1),
            "cause": found[0].cause,
            "ranks": [],
            "hosts": [],
            "right": True,
        },
    )


@pytest.mark.parametrize("name", LAST)
def test_a_lost_node_is_explained(
    cluster: Spec, operator: Controller, image: Image, name: str
) -> None:
    try:
        explained(name, LAST[name], _told(cluster, image, name, LAST[name]))
    finally:
        start_node(cluster)
