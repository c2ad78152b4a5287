"""A queue of Kueue, unmodified, and jobs of both kinds in it (AC-12).

The queue has room for one job at a time. Kueue computes a TrainJob's pods by itself from the
runtime, so what it counts must be what we make. The jobs' pods run as an account of the user's.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from mpi_trainer.api.kinds.annotations import SCHEDULE_TIMEOUT
from tests.cluster import Kubectl, eventually, restricted
from tests.e2e.operator import mpijob
from tools.cluster.spec import Spec

API = "kueue.x-k8s.io/v1beta2"
QUEUE = "lq"
PATIENCE = 120
FLAVOR = {"kubernetes.io/os": "linux"}
"""a node selector that Kueue writes into whatever it admits"""
WAIT = "until [ -e /tmp/go ]; do sleep 0.2; done; hostname"
ACCOUNT = "runner"
COMMAND = ["mpirun", "-n", "2", "sh", "-c", WAIT]

Object = dict[str, Any]


class Queued(msgspec.Struct, frozen=True):
    """A job in the queue, as its user and as Kueue see it."""

    kubectl: Kubectl
    kind: str
    name: str

    def object(self) -> Object:
        return self.kubectl.get(self.kind, self.name)

    def suspended(self) -> bool:
        spec = self.object()["spec"]
        return bool((spec if self.kind == "trainjob" else spec["runPolicy"]).get("suspend"))

    def holds(self, condition: str) -> bool:
        found = self.object().get("status", {}).get("conditions", ())
        return any(c["type"] == condition and c["status"] == "True" for c in found)

    def pods(self) -> list[Object]:
        label = (
            "jobset.sigs.k8s.io/jobset-name"
            if self.kind == "trainjob"
            else "training.kubeflow.org/job-name"
        )
        found = self.kubectl("get", "pods", f"--selector={label}={self.name}", "-o", "json")
        items: list[Object] = json.loads(found)["items"]
        return items

    def runs(self) -> bool:
        phases = [pod["status"]["phase"] for pod in self.pods()]
        return phases == ["Running"] * (2 if self.kind == "trainjob" else 3)

    def rests(self) -> bool:
        """Suspended, with no pod, and with no active Job that Kueue would wait for."""
        status = self.object().get("status", {})
        active = sum(job["active"] for job in status.get("jobsStatus", ()))
        return self.suspended() and self.holds("Suspended") and not self.pods() and not active

    def workloads(self) -> list[Object]:
        """Kueue's own record of it: one, once Kueue has seen it."""
        return [
            one
            for one in json.loads(self.kubectl("get", "workloads", "-o", "json"))["items"]
            if one["metadata"]["ownerReferences"][0]["name"] == self.name
        ]

    def workload(self) -> Object:
        (found,) = self.workloads()
        return found

    def reserved(self) -> bool:
        conditions = self.workload()["status"].get("conditions", ())
        return ("QuotaReserved", "True") in {(c["type"], c["status"]) for c in conditions}

    def finished(self) -> bool:
        """Whether Kueue has given its share of the queue back."""
        conditions = self.workload()["status"]["conditions"]
        return ("Finished", "True") in {(c["type"], c["status"]) for c in conditions}

    def activate(self, wanted: bool) -> None:
        change = json.dumps({"spec": {"active": wanted}})
        name = self.workload()["metadata"]["name"]
        self.kubectl("patch", "workload", name, "--type=merge", f"--patch={change}")

    def let_go(self) -> None:
        """Ends its ranks."""
        for pod in self.pods():
            answer = self.kubectl.run_in(pod["metadata"]["name"], "touch", "/tmp/go")
            assert answer.returncode == 0, answer.stderr


@pytest.fixture
def queue(shipped_runtimes: tuple[str, ...], cluster: Spec) -> Iterator[Kubectl]:
    """A namespace with a queue that has room for one job, and holds everything at first."""
    word = secrets.token_hex(4)
    kubectl = Kubectl(cluster, f"test-queue-{word}")
    flavor = {"name": word, "resources": [{"name": "cpu", "nominalQuota": "500m"}]}
    kubectl.apply(
        restricted(kubectl.namespace),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}},
        _kueue("ResourceFlavor", word, nodeLabels=FLAVOR),
        _kueue(
            "ClusterQueue",
            word,
            namespaceSelector={},
            stopPolicy="Hold",
            preemption={"withinClusterQueue": "LowerPriority"},
            resourceGroups=[{"coveredResources": ["cpu"], "flavors": [flavor]}],
        ),
        _kueue("LocalQueue", QUEUE, clusterQueue=word),
        {**_kueue("WorkloadPriorityClass", f"low-{word}"), "value": 1},
        {**_kueue("WorkloadPriorityClass", f"high-{word}"), "value": 100},
    )
    yield kubectl
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
    kubectl("delete", "clusterqueue", word, "--wait=false")
    kubectl("delete", "workloadpriorityclass", f"low-{word}", f"high-{word}", "--wait=false")
    kubectl("delete", "resourceflavor", word, "--wait=false")


def _kueue(kind: str, name: str, **spec: Any) -> Object:
    body: Object = {"apiVersion": API, "kind": kind, "metadata": {"name": name}}
    return {**body, "spec": spec} if spec else body


def open_queue(queue: Kubectl) -> None:
    """From now on Kueue admits what fits."""
    word = queue.namespace.rpartition("-")[2]
    queue("patch", "clusterqueue", word, "--type=merge", '--patch={"spec":{"stopPolicy":"None"}}')


def hold_queue(queue: Kubectl) -> None:
    """From now on Kueue admits nothing."""
    word = queue.namespace.rpartition("-")[2]
    queue("patch", "clusterqueue", word, "--type=merge", '--patch={"spec":{"stopPolicy":"Hold"}}')


def submitted(queue: Kubectl, kind: str, name: str, priority: str, seconds: int = 0) -> Queued:
    """With `seconds` to find a place for its pods, where there is none; 0: as usual."""
    word = queue.namespace.rpartition("-")[2]
    labels = {
        "kueue.x-k8s.io/queue-name": QUEUE,
        "kueue.x-k8s.io/priority-class": f"{priority}-{word}",
    }
    made = (_trainjob if kind == "trainjob" else _mpijob)(name, labels)
    if seconds:
        (_homeless_trainjob if kind == "trainjob" else _homeless_mpijob)(made, seconds)
    queue.apply(made)
    return Queued(queue, kind, name)


def _trainjob(name: str, labels: dict[str, str]) -> Object:
    cpu = {"cpu": "200m"}
    trainer = {
        "numNodes": 2,
        "command": COMMAND,
        "resourcesPerNode": {"requests": cpu, "limits": {"cpu": "1"}},
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "runtimeRef": {"name": "mpi-openmpi-cpu"},
            "trainer": trainer,
            "runtimePatches": [_as_account("launcher", "node")],
        },
    }


def _as_account(*jobs: str) -> Object:
    pod = {"template": {"spec": {"template": {"spec": {"serviceAccountName": ACCOUNT}}}}}
    patched = [{"name": job, **pod} for job in jobs]
    template = {"template": {"spec": {"replicatedJobs": patched}}}
    return {"manager": "tests.example/account", "trainingRuntimeSpec": template}


def _mpijob(name: str, labels: dict[str, str]) -> Object:
    container = {"resources": {"requests": {"cpu": "150m"}}}
    image = "localhost/mpi-openmpi:4.1"
    account = {"serviceAccountName": ACCOUNT}
    changes: Object = {"container": container, "metadata": {"labels": labels}}
    return mpijob(name, image, COMMAND, slots=1, launcher=account, worker=account, **changes)


NOWHERE = {"kubernetes.io/hostname": "no-such-node"}


def _homeless_mpijob(job: Object, seconds: int) -> None:
    job["spec"]["runPolicy"]["schedulingPolicy"] = {"scheduleTimeoutSeconds": seconds}
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    worker["nodeSelector"] = NOWHERE


def _homeless_trainjob(job: Object, seconds: int) -> None:
    job["metadata"]["annotations"] = {SCHEDULE_TIMEOUT: str(seconds)}
    (patch,) = job["spec"]["runtimePatches"]
    *_, node = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    node["template"]["spec"]["template"]["spec"]["nodeSelector"] = NOWHERE


def freed_after(job: Queued) -> float:
    """Seconds from the end of its last pod to the release of its quota (C-10)."""
    eventually("its pods end", lambda: not job.pods(), PATIENCE)
    ended = time.monotonic()
    eventually("its quota is free", lambda: not job.reserved(), PATIENCE)
    return time.monotonic() - ended


def counted(job: Queued) -> dict[str, int]:
    """Pods by role, as Kueue reckons them."""
    return {one["name"]: one["count"] for one in job.workload()["spec"]["podSets"]}


def made(job: Queued) -> dict[str, int]:
    """Pods by role, as we make them."""
    if job.kind == "mpijob":
        roles = [pod["metadata"]["labels"]["training.kubeflow.org/job-role"] for pod in job.pods()]
        return {role: roles.count(role) for role in set(roles)}
    jobs = job.kubectl.get("jobset", job.name)["spec"]["replicatedJobs"]
    return {
        one["name"]: one.get("replicas", 1) * one["template"]["spec"]["parallelism"] for one in jobs
    }
