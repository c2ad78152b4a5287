"""The operator on the shared cluster, and MPIJobs as values.

The rights are those of the manifests, used with the installed account's own token; the process is
the working tree's, outside the cluster, so that a change is tested without building an image
(installing by the documented commands is test_install.py's subject). A second run on the same
cluster waits for the lease, and is served by the first one's controller meanwhile.
"""

from __future__ import annotations

import json
import secrets
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from mpi_trainer.layout.agent.summary import Summary, parse
from tests.api.accounts import with_token
from tests.api.running import Controller
from tests.cluster import Kubectl, eventually, restricted
from tests.e2e.manifests import Object
from tools.cluster.spec import Spec

MANIFESTS = Path(__file__).parents[2] / "manifests"
HOME = "mpi-trainer"
_OUTSIDE = frozenset({"Deployment", "PodDisruptionBudget", "Service"})


@pytest.fixture(scope="session")
def operator(cluster: Spec, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """A controller that serves the cluster, with the rights of the manifests and no others."""
    yield from serving(cluster, tmp_path_factory.mktemp("operator"))


def serving(cluster: Spec, folder: Path, *flags: str) -> Iterator[Controller]:
    """The same, with further flags."""
    kubectl = Kubectl(cluster, HOME)
    kubectl("apply", "-k", str(MANIFESTS / "crds"))
    # Not `kubectl wait`: it gives up where the definition has no condition at all yet.
    served = ("get", "mpijobs", "--all-namespaces")
    eventually("MPIJobs are served", lambda: not kubectl.attempt(*served).returncode, 60)
    parts = yaml.safe_load_all(kubectl("kustomize", str(MANIFESTS / "overlays" / "kubernetes")))
    kubectl.apply(*(part for part in parts if part["kind"] not in _OUTSIDE))
    config = with_token(kubectl, HOME).kubeconfig(folder)
    # Where the machine is too busy to renew a lease in time a controller ends, and nobody starts
    # this one again; so it has longer than the usual 15 s.
    lease = ("--lease-duration=60s", "--renew-deadline=50s", "--retry-period=2s")
    with Controller(config, f"--lock-namespace={HOME}", *lease, *flags) as one:
        yield one
        assert one.process is not None
        assert one.process.poll() is None, f"the controller ended: {one.log()}"
        assert "Traceback" not in one.log(), one.log()


@pytest.fixture(scope="session")
def restricted_home(operator: Controller, cluster: Spec) -> Iterator[Kubectl]:
    """One namespace under OpenShift's rules for all jobs of a run that do not disturb others."""
    kubectl = Kubectl(cluster, f"test-jobs-{secrets.token_hex(4)}")
    kubectl.apply(restricted(kubectl.namespace))
    yield kubectl
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


class Running(msgspec.Struct, frozen=True):
    """A job that was submitted, as its user sees it."""

    kubectl: Kubectl
    name: str

    def until(self, kind: str, seconds: int = 240) -> Object:
        """Waits until a condition holds; the condition. Ends early if the job has."""
        over = {"Succeeded", "Failed"} - {kind}

        def reached() -> bool:
            held = {k for k, c in self.conditions().items() if c["status"] == "True"}
            assert not held & over, f"{self.name} is {held}, not {kind}\n{self.story()}"
            return kind in held

        try:
            eventually(f"{self.name} is {kind}", reached, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story()}") from None
        return self.conditions()[kind]

    def object(self) -> Object:
        return self.kubectl.read(f"apis/kubeflow.org/v2beta1/mpijobs/{self.name}")

    def conditions(self) -> dict[str, Object]:
        status = self.object().get("status", {})
        return {c["type"]: c for c in status.get("conditions", [])}

    def pods(self, role: str = "") -> list[Object]:
        label = f"training.kubeflow.org/job-name={self.name}"
        if role:
            label += f",training.kubeflow.org/job-role={role}"
        query = urllib.parse.urlencode({"labelSelector": label})
        items: list[Object] = self.kubectl.read(f"api/v1/pods?{query}")["items"]
        return items

    def log(self) -> str:
        return self.kubectl("logs", f"job/{self.name}-launcher")

    def last_words(self) -> str:
        """The launcher's termination message."""
        (pod,) = self.pods("launcher")
        (status,) = pod["status"]["containerStatuses"]
        words: str = status["state"]["terminated"].get("message", "")
        return words

    def summary(self) -> Summary:
        return parse(self.last_words())

    def events(self) -> list[str]:
        """`Reason: message` of every event about the job."""
        about = f"--field-selector=involvedObject.kind=MPIJob,involvedObject.name={self.name}"
        found = json.loads(self.kubectl("get", "events", about, "-o", "json"))["items"]
        return [f"{event['reason']}: {event['message']}" for event in found]

    def said(self, role: str) -> list[str]:
        """The lines of the log that are names of the job's pods of a role."""
        names = f"{self.name}-{role}-"
        return [line for line in self.log().splitlines() if line.startswith(names)]

    def let_go(self) -> None:
        """Ends the ranks of a `waiting_job`."""
        for pod in self.pods("worker"):
            answer = self.kubectl.run_in(pod["metadata"]["name"], "touch", "/tmp/go")
            assert answer.returncode == 0, answer.stderr

    def story(self) -> str:
        """Everything that a failed test should show."""
        shown = [
            ("get", "mpijob", self.name, "-o", "jsonpath={.status}"),
            ("get", "pods", "-o", "wide", f"--selector=training.kubeflow.org/job-name={self.name}"),
            ("logs", f"job/{self.name}-launcher", "--all-containers", "--tail=40"),
            ("get", "events"),
        ]
        return "\n".join(self.kubectl.attempt(*arguments).stdout for arguments in shown)


def submit(kubectl: Kubectl, job: Object, *others: Object) -> Running:
    kubectl.apply(*others, job)
    return Running(kubectl, job["metadata"]["name"])


def mpijob(
    name: str, image: str, command: Sequence[str], workers: int = 2, slots: int = 2, **changes: Any
) -> Object:
    """An MPIJob without any security setting; workers on different nodes.

    `launcher` and `worker` are merged into the pods' specs, `container` into all containers,
    `policy` is the run policy, and what remains goes into the job's spec.
    """
    container = {"name": "mpi", "image": image, "imagePullPolicy": "Never"}
    container |= changes.pop("container", {})
    launcher: Object = {"containers": [{**container, "command": list(command)}]}
    worker: Object = {"containers": [container], "affinity": _apart(name)}
    own = {"launcher": changes.pop("launcher", {}), "worker": changes.pop("worker", {})}
    for spec in (launcher, worker):
        spec["terminationGracePeriodSeconds"] = 5
    replicas = {
        "Launcher": {"replicas": 1, "template": {"spec": launcher | own["launcher"]}},
        "Worker": {"replicas": workers, "template": {"spec": worker | own["worker"]}},
    }
    policy = {"cleanPodPolicy": "None", "backoffLimit": 0, **changes.pop("policy", {})}
    metadata = {"name": name, **changes.pop("metadata", {})}
    spec = {"slotsPerWorker": slots, "runPolicy": policy, "mpiReplicaSpecs": replicas, **changes}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": metadata,
        "spec": spec,
    }


def waiting_job(name: str, image: str, **changes: Any) -> Object:
    """Two ranks on two workers that say where they are once somebody lets them go."""
    rank = "until [ -e /tmp/go ]; do sleep 0.2; done; hostname"
    command = ["mpirun", "--bind-to", "none", "-n", "2", "sh", "-c", rank]
    return mpijob(name, image, command, slots=1, **changes)


def _apart(name: str) -> Object:
    labels = {
        "training.kubeflow.org/job-name": name,
        "training.kubeflow.org/job-role": "worker",
    }
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
    rule = "preferredDuringSchedulingIgnoredDuringExecution"
    return {"podAntiAffinity": {rule: [{"weight": 100, "podAffinityTerm": term}]}}
