"""One job against another on real nodes: keys, ports, labels, words (SC-009, AC-13, AC-19).

Each test ends by taking its defence away and getting in, so that none passes because nothing was
there to get into.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from mpi_trainer.api.kinds.annotations import NETWORK_POLICY
from mpi_trainer.layout.agent import paths
from tests.cluster import Kubectl, eventually, restricted
from tests.e2e.manifests import pod
from tests.e2e.operator import MANIFESTS, Running, mpijob, submit, waiting_job

LISTENING = """\
import pathlib
for file in ("tcp", "tcp6"):
    for line in pathlib.Path("/proc/net", file).read_text().splitlines()[1:]:
        place, state = line.split()[1], line.split()[3]
        if state == "0A" and not place.startswith(("0100007F", "0" * 24 + "01000000")):
            print(int(place.rpartition(":")[2], 16))
"""
SCAN = """\
import concurrent.futures, socket, sys
def opens(port):
    try:
        socket.create_connection((sys.argv[1], port), 3).close()
    except OSError:
        return False
    return True
ports = [int(word) for word in sys.argv[2:]]
with concurrent.futures.ThreadPoolExecutor(64) as pool:
    print(*[port for port, got in zip(ports, pool.map(opens, ports)) if got])
"""
EVIL = "$(touch /tmp/in-1) `touch /tmp/in-2`; touch /tmp/in-3 #' \" \\\nHost *\n  ProxyCommand id"
# A rank says what it was given, and what anybody has left in the pod.
HONEST = """\
import os, pathlib
left = sorted(str(one) for one in pathlib.Path("/tmp").glob("in-*"))
print("given", os.environ["EVIL"].encode().hex(), left, flush=True)
"""

pytestmark = pytest.mark.timeout(900, func_only=True)
Object = dict[str, Any]


class Lab(msgspec.Struct, frozen=True):
    """Two running jobs of one namespace; the first one's network is closed."""

    kubectl: Kubectl
    ours: Running
    theirs: Running
    image: str

    def inside(self, name: str, *command: str) -> str:
        answer = self.kubectl.run_in(name, *command)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout


@pytest.fixture(scope="module")
def lab(restricted_home: Kubectl, image: Callable[[str], str]) -> Iterator[Lab]:
    reference, word = image("mpi-openmpi"), secrets.token_hex(2)
    closed = {"annotations": {NETWORK_POLICY: "restricted"}}
    near = pod(f"near-{word}", reference, 1, ["sleep", "100000"])
    ours = submit(restricted_home, waiting_job(f"ours-{word}", reference, metadata=closed), near)
    theirs = submit(restricted_home, waiting_job(f"theirs-{word}", reference))
    for job in (ours, theirs):
        job.until("Running", 600)
    restricted_home.wait("--for=condition=Ready", f"pod/near-{word}", seconds=400)
    yield Lab(restricted_home, ours, theirs, reference)
    for job in (ours, theirs):
        restricted_home("delete", "mpijob", job.name, "--wait=false")
    restricted_home("delete", "pod", f"near-{word}", "--wait=false")


def name_of(found: Object) -> str:
    return str(found["metadata"]["name"])


def logs_in(lab: Lab, source: str, key: str, address: str) -> bool:
    """Whether the sshd at an address takes a pod's key."""
    options = ("IdentitiesOnly=yes", "BatchMode=yes", "StrictHostKeyChecking=no")
    words = [word for option in options for word in ("-o", option)]
    target = ("-p", str(paths.PORT), "-o", "UserKnownHostsFile=/dev/null", f"mpi@{address}")
    asked = ("ssh", "-v", "-F", "none", "-i", key, *words, "-o", "ConnectTimeout=10", *target)
    said = lab.kubectl.run_in(source, *asked, "true").stderr
    entered = "Authenticated to" in said
    assert entered or "Permission denied" in said, said
    return entered


def test_the_key_of_one_job_opens_no_pod_of_another(lab: Lab) -> None:
    """AC-19: whoever has stolen it, on an open network."""
    (thief,), (own, _) = lab.theirs.pods("launcher"), lab.theirs.pods("worker")
    key, folder = f"{paths.SCRATCH}/ssh/id", f"{paths.SCRATCH}/ssh"
    source = name_of(thief)
    assert logs_in(lab, source, key, own["status"]["podIP"]), "it opens its own job's"
    lab.kubectl("annotate", "mpijob", lab.ours.name, f"{NETWORK_POLICY}=none", "--overwrite")
    try:
        victim, _ = lab.ours.pods("worker")
        address = victim["status"]["podIP"]
        door = [paths.PORT]
        eventually("it is open", lambda: ports_open(lab, source, address, door) == door)
        assert not logs_in(lab, source, key, address)

        public = lab.inside(source, "ssh-keygen", "-y", "-f", key).strip()
        let_in = f"echo '{public}' >> {folder}/authorized_keys"
        lab.inside(name_of(victim), "sh", "-c", let_in)
        assert logs_in(lab, source, key, address), "where it is let in, it does get in"
    finally:
        closed = f"{NETWORK_POLICY}=restricted"
        lab.kubectl("annotate", "mpijob", lab.ours.name, closed, "--overwrite")


def test_a_worker_holds_no_key_that_opens_anything(lab: Lab) -> None:
    """AC-19: what breaks into a worker has its host key, and nobody takes that."""
    first, second = lab.theirs.pods("worker")
    places = (paths.KEYS, paths.SCRATCH)
    found = lab.inside(name_of(first), "grep", "-rl", "PRIVATE KEY", *places).split()
    assert {path.rpartition("/")[2] for path in found} == {"host-private", "host_key"}
    key = f"{paths.SCRATCH}/ssh/host_key"
    assert not logs_in(lab, name_of(first), key, second["status"]["podIP"])
    (launcher,) = lab.theirs.pods("launcher")
    held = lab.inside(name_of(launcher), "grep", "-rl", "PRIVATE KEY", *places).split()
    assert f"{paths.SCRATCH}/ssh/id" in held, "the search finds a key where there is one"


def listening(lab: Lab, name: str) -> list[int]:
    return sorted({int(port) for port in lab.inside(name, "python3", "-c", LISTENING).split()})


def ports_open(lab: Lab, source: str, address: str, ports: list[int]) -> list[int]:
    scan = ("python3", "-c", SCAN, address, *map(str, ports))
    return [int(port) for port in lab.inside(source, *scan).split()]


def test_no_listening_port_of_a_closed_job_answers_a_pod_of_another(lab: Lab) -> None:
    """AC-13, CTL-6: sshd's, and those that MPI has chosen by itself."""
    near = next(
        name
        for name in lab.kubectl("get", "pods", "-o", "name").replace("pod/", "").split()
        if name.startswith("near-")
    )
    (attacker, _), targets = lab.theirs.pods("worker"), lab.ours.pods()
    doors = {
        one["status"]["podIP"]: ports for one in targets if (ports := listening(lab, name_of(one)))
    }
    assert sum(port != paths.PORT for ports in doors.values() for port in ports), doors

    def reached() -> dict[str, list[int]]:
        return {
            f"{source} {address}": got
            for source in (near, name_of(attacker))
            for address, ports in doors.items()
            if (got := ports_open(lab, source, address, ports))
        }

    eventually("none answers", lambda: reached() == {}, 120)
    lab.kubectl("annotate", "mpijob", lab.ours.name, f"{NETWORK_POLICY}=none", "--overwrite")
    try:
        eventually("without the policies all do", lambda: len(reached()) == 2 * len(doors), 120)
    finally:
        closed = f"{NETWORK_POLICY}=restricted"
        lab.kubectl("annotate", "mpijob", lab.ours.name, closed, "--overwrite")
    eventually("closed again", lambda: reached() == {}, 120)


def test_a_pod_that_passes_for_the_jobs_is_not_made(lab: Lab) -> None:
    """AC-13: with its labels it would be let through, so nobody else may set them."""
    (member, _) = lab.ours.pods("worker")
    labels = {
        key: value
        for key, value in member["metadata"]["labels"].items()
        if key.startswith("training.kubeflow.org/") and "index" not in key
    }
    liar = pod("liar", lab.image, 1, ["sleep", "100000"], labels=labels)
    address = member["status"]["podIP"]
    policies = str(MANIFESTS / "policies")
    lab.kubectl("apply", "-k", policies)
    # As a user of the namespace: an administrator may do as he likes.
    user = f"system:serviceaccount:{lab.kubectl.namespace}:default"
    role = ("--clusterrole=edit", f"--serviceaccount={lab.kubectl.namespace}:default")
    lab.kubectl("create", "rolebinding", "liar", *role)

    def tried() -> str:
        answer = lab.kubectl.attempt("create", f"--as={user}", "-f", "-", data=json.dumps(liar))
        return answer.stdout + answer.stderr

    try:
        # A policy holds a moment after it was made.
        eventually("it is refused", lambda: "forbidden" in refused_or_gone(lab, tried()), 120)
        lab.kubectl("delete", "-k", policies)
        eventually("without the policy it is made", lambda: "created" in tried(), 120)
        lab.kubectl.wait("--for=condition=Ready", "pod/liar", seconds=300)
        opened = [paths.PORT]
        eventually(
            "and is let through",
            lambda: ports_open(lab, "liar", address, opened) == opened,
            120,
        )
    finally:
        lab.kubectl.attempt("delete", "-k", policies, "--ignore-not-found")
        lab.kubectl.attempt("delete", "pod", "liar", "--wait=false", "--ignore-not-found")
        lab.kubectl.attempt("delete", "rolebinding", "liar")


def refused_or_gone(lab: Lab, said: str) -> str:
    if "created" in said:
        lab.kubectl("delete", "pod", "liar", "--now")
    return said


def test_no_word_of_a_job_is_read_by_a_shell_or_ssh(lab: Lab) -> None:
    """SC-009: of a variable, an annotation, a label's value; what is meant for a program reaches
    it as it was written."""
    name = f"words-{secrets.token_hex(2)}"
    given = {"env": [{"name": "EVIL", "value": EVIL}]}
    metadata = {"annotations": {"example.com/evil": EVIL}}
    command = ["mpirun", "-x", "EVIL", "--bind-to", "none", "-n", "2", "python3", "-c", HONEST]
    job = submit(
        lab.kubectl,
        mpijob(name, lab.image, command, slots=1, container=given, metadata=metadata),
    )
    try:
        job.until("Succeeded", 400)
        said = re.findall(r"^given (\S+) (\[.*\])$", job.log(), re.M)
        assert said == [(EVIL.encode().hex(), "[]")] * 2
        for one in job.pods():
            text = json.dumps(one["status"])
            assert "ProxyCommand" not in text
        evil_name = mpijob("x;touch in-4", lab.image, command)
        answer = lab.kubectl.attempt("create", "-f", "-", data=json.dumps(evil_name))
        assert answer.returncode
        assert "metadata.name" in answer.stderr
    finally:
        lab.kubectl("delete", "mpijob", name, "--wait=false")


def test_a_pod_of_another_namespace_reaches_none_of_its_ports(lab: Lab) -> None:
    """AC-13."""
    other = Kubectl(lab.kubectl.spec, f"{lab.kubectl.namespace}-far")
    other.apply(restricted(other.namespace))
    try:
        other.apply(pod("far", lab.image, 2, ["sleep", "100000"]))
        other.wait("--for=condition=Ready", "pod/far", seconds=300)
        far = msgspec.structs.replace(lab, kubectl=other)
        (open_one, _), (closed_one, _) = lab.theirs.pods("worker"), lab.ours.pods("worker")
        door = [paths.PORT]
        assert ports_open(far, "far", open_one["status"]["podIP"], door) == door
        assert ports_open(far, "far", closed_one["status"]["podIP"], door) == []
    finally:
        other("delete", "namespace", other.namespace, "--wait=false")
