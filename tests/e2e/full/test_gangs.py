"""Many jobs at once on a cluster with room for one, by each gang scheduler (CTL-5, AC-2, AC-12).

Each of the three nodes has one place, and a job needs all three. `MPI_TRAINER_GANG_SECONDS` says
for how long wave follows wave, ten minutes if it is not set; every other wave has launchers that
come only when their workers are ready.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
import yaml

from tests.cluster import Kubectl, eventually
from tests.e2e.gangs import Judge, Watch
from tests.e2e.kueue import API, QUEUE
from tests.e2e.operator import mpijob, serving
from tools.cluster.client import Client
from tools.cluster.gangs import SCHEDULER_NAME
from tools.cluster.spec import Spec
from tools.cluster.up import up

SECONDS = float(os.environ.get("MPI_TRAINER_GANG_SECONDS", "600"))
JOBS = int(os.environ.get("MPI_TRAINER_GANG_JOBS", "10"))
PLACE = "example.com/place"
NODES = ("node1", "node2", "node3")
WORKERS = 2
LATE = "WaitForWorkersReady"
POLICIES = ("AtStartup", LATE)
WAVE_SECONDS = 1200
FLAGS = {"coscheduling": SCHEDULER_NAME, "volcano": "volcano", "kueue": ""}
# Under `mpirun hostname` the ranks say that they were there, and the gang ends.
COMMAND = ["mpirun", "--bind-to", "none", "-n", "2", "hostname"]

pytestmark = pytest.mark.timeout(SECONDS + 2 * WAVE_SECONDS + 600, func_only=True)
Object = dict[str, Any]


def places(spec: Spec, count: int | None) -> None:
    """How many of our places each node has; None: it never had any."""
    value = None if count is None else str(count)
    patch = json.dumps({"status": {"capacity": {PLACE: value}, "allocatable": {PLACE: value}}})
    kubectl = Kubectl(spec)
    for node in NODES:
        kubectl("patch", "node", node, "--subresource=status", "--type=merge", "-p", patch)


@pytest.fixture(scope="module")
def scarce(cluster: Spec) -> Iterator[Spec]:
    places(cluster, 1)
    yield cluster
    places(cluster, None)


@contextmanager
def space(spec: Spec) -> Iterator[Kubectl]:
    kubectl = Kubectl(spec, f"test-gangs-{secrets.token_hex(4)}")
    kubectl.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": kubectl.namespace}}
    )
    try:
        yield kubectl
    finally:
        kubectl("delete", "mpijobs", "--all", "--wait=false")
        kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


def submitted(kubectl: Kubectl, image: str, wave: int, labels: dict[str, str]) -> list[str]:
    """Names of as many jobs at once; every second wave's launchers are late."""
    policy, names = POLICIES[wave % 2], [f"w{wave}-{number}" for number in range(JOBS)]
    container = {"resources": {"limits": {PLACE: "1"}, "requests": {"cpu": "10m"}}}
    given: Object = {"slots": 1, "workers": WORKERS, "container": container}
    given |= {
        "policy": {"cleanPodPolicy": "All", "backoffLimit": 3},
        "metadata": {"labels": labels},
    }
    given["launcherCreationPolicy"] = policy
    kubectl.apply(*(mpijob(name, image, COMMAND, **given) for name in names))
    return names


def states(kubectl: Kubectl, names: list[str]) -> dict[str, str]:
    items = Client(kubectl.spec).get(
        f"/apis/kubeflow.org/v2beta1/namespaces/{kubectl.namespace}/mpijobs"
    )["items"]
    found = {}
    for item in items:
        held = {
            c["type"]: c
            for c in item.get("status", {}).get("conditions", ())
            if c["status"] == "True"
        }
        ended = next((kind for kind in ("Succeeded", "Failed") if kind in held), "")
        found[item["metadata"]["name"]] = ended
    return {name: found[name] for name in names}


def wave(kubectl: Kubectl, image: str, number: int, strict: bool, labels: dict[str, str]) -> float:
    """Seconds from the submission of all jobs to the end of the last."""
    late = POLICIES[number % 2] == LATE
    judge = (
        Judge(WORKERS, ("worker",), strict=strict)
        if late
        else Judge(WORKERS + 1, ("worker", "launcher"), strict=strict)
    )
    with Watch(kubectl, judge) as watch:
        started = time.monotonic()
        names = submitted(kubectl, image, number, labels)

        def over() -> bool:
            try:
                seen = states(kubectl, names)
            except OSError:  # on a busy machine an answer may take longer than a client waits
                return False
            assert "Failed" not in seen.values(), seen
            return all(seen.values())

        eventually("all jobs have succeeded", over, WAVE_SECONDS)
        took = time.monotonic() - started
        assert judge.ended(time.monotonic()) == []
        assert {gang.wholes for gang in judge.gangs.values()} == {1}
        assert set(judge.gangs) == set(names)
    kubectl("delete", "mpijobs", "--all")
    eventually("their pods are gone", lambda: not kubectl.read("api/v1/pods")["items"], 300)
    print(f"wave {number}: {JOBS} jobs, late={late}: {took:.1f} s, {watch.events} events")
    return took


def waves(kubectl: Kubectl, image: str, strict: bool, labels: dict[str, str]) -> None:
    begun, number = time.monotonic(), 0
    while number < len(POLICIES) or time.monotonic() - begun < SECONDS:
        wave(kubectl, image, number, strict, labels)
        number += 1


@pytest.mark.parametrize("way", ["coscheduling", "volcano"])
def test_gangs_are_placed_whole_or_not_at_all_and_all_finish(
    scarce: Spec, image: Callable[[str], str], tmp_path: Any, way: str
) -> None:
    """AC-2, CTL-5: watched at every event of every pod."""
    spec = up(msgspec.structs.replace(scarce, addons=(*scarce.addons, way)))
    flags = (f"--gang-scheduling={FLAGS[way]}", "--schedule-timeout-default=0")
    reference = image("mpi-openmpi")
    for _ in serving(spec, tmp_path, *flags):
        with space(spec) as kubectl:
            waves(kubectl, reference, True, {})


def test_with_kueue_gangs_are_whole_soon_or_leave(
    scarce: Spec, image: Callable[[str], str], tmp_path: Any
) -> None:
    """AC-12: Kueue counts quota, not nodes, so it waits for the pods of what it has admitted."""
    reference = image("mpi-openmpi")
    controllers = serving(scarce, tmp_path, "--schedule-timeout-default=0")
    for _ in controllers:
        with waiting_for_pods(scarce), space(scarce) as kubectl, queued(kubectl):
            waves(kubectl, reference, False, {"kueue.x-k8s.io/queue-name": QUEUE})


def test_without_a_gang_scheduler_jobs_are_placed_in_part(
    scarce: Spec, image: Callable[[str], str], tmp_path: Any
) -> None:
    """What the others show is seen by this watch where nothing stands against it."""
    reference = image("mpi-openmpi")
    judge = Judge(WORKERS + 1, ("worker", "launcher"))
    for _ in serving(scarce, tmp_path, "--schedule-timeout-default=0"):
        with space(scarce) as kubectl, Watch(kubectl, judge):
            submitted(kubectl, reference, 0, {})
            eventually("a job runs in part", lambda: bool(judge.faults), 180)


@contextmanager
def waiting_for_pods(spec: Spec) -> Iterator[None]:
    """Kueue with waitForPodsReady, and as it was afterwards."""
    kubectl = Kubectl(spec, "kueue-system")
    before = kubectl.get("configmap", "kueue-manager-config")["data"]
    (name,) = before
    config = yaml.safe_load(before[name])
    config["waitForPodsReady"] = {"timeout": "10m", "blockAdmission": True}
    _reconfigured(kubectl, {name: yaml.safe_dump(config)})
    try:
        yield
    finally:
        _reconfigured(kubectl, before)


def _reconfigured(kubectl: Kubectl, data: dict[str, str]) -> None:
    patch = json.dumps({"data": data})
    kubectl("patch", "configmap", "kueue-manager-config", "--type=merge", "-p", patch)
    kubectl("rollout", "restart", "deployment/kueue-controller-manager")
    waited = ("rollout", "status", "deployment/kueue-controller-manager", "--timeout=500s")
    kubectl(*waited, seconds=520)


@contextmanager
def queued(kubectl: Kubectl) -> Iterator[None]:
    """A queue with as much quota as there are places."""
    word = kubectl.namespace
    quota = {"name": PLACE, "nominalQuota": len(NODES)}
    flavor = {"name": word, "resources": [quota, {"name": "cpu", "nominalQuota": 100}]}
    group = {"coveredResources": [PLACE, "cpu"], "flavors": [flavor]}

    def kind(name: str, called: str, **spec: Any) -> Object:
        body: Object = {"apiVersion": API, "kind": name, "metadata": {"name": called}}
        return {**body, "spec": spec} if spec else body

    kubectl.apply(
        kind("ResourceFlavor", word),
        kind("ClusterQueue", word, namespaceSelector={}, resourceGroups=[group]),
        kind("LocalQueue", QUEUE, clusterQueue=word),
    )
    yield
    kubectl("delete", "clusterqueue", word, "--wait=false")
    kubectl("delete", "resourceflavor", word, "--wait=false")
