"""`odh diff` against a real API server: the program itself, as a user calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.yaml import load
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.render.mpijob.children import Facts, children
from tests.api.test_render import create, ready
from tests.cluster import Kubectl, define
from tools.cluster.report import environment

ODH = Path(sys.executable).with_name("odh")
CRDS = Path(__file__).parents[3] / "manifests/crds"
JOB = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: pi}
spec:
  slotsPerWorker: 1
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
          containers:
            - name: mpi
              image: registry.example.com/pi:1
              command: [mpirun, pi]
              securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    Worker:
      replicas: 2
      template:
        spec:
          securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
          containers:
            - name: mpi
              image: registry.example.com/pi:1
              resources: {limits: {cpu: "0.5", memory: 1024Mi}}
              securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
"""

Ended = subprocess.CompletedProcess[str]
Diff = Callable[..., Ended]


@pytest.fixture
def diff(namespace: Kubectl) -> Diff:
    """Runs `odh diff -f -` in a fresh namespace of a cluster that knows MPIJobs."""
    define(namespace, CRDS, "mpijobs")
    ready(namespace)

    def run(text: str, *words: str) -> Ended:
        return subprocess.run(
            [ODH, "diff", "-f", "-", "-n", namespace.namespace, *words],
            input=text,
            env=environment(namespace.spec),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def made(namespace: Kubectl) -> MPIJob:
    """The job on the cluster with all its children, as a controller would have made them."""
    namespace("create", "-f", "-", data=JOB)
    job = load.job(namespace.get("mpijob", "pi")).value
    assert isinstance(job, MPIJob)
    create(namespace, children(layout(job), job, Facts(attempt=3)))
    return job


def test_a_job_that_is_not_there_would_be_created_with_all_its_objects(diff: Diff) -> None:
    ended = diff(JOB)
    assert ended.returncode == 1, ended.stderr
    assert ended.stdout.splitlines() == [
        f"{name}: would be created"
        for name in (
            "mpijob/pi",
            "service/pi",
            "configmap/pi-config",
            "secret/pi-ssh",
            "pod/pi-worker-0",
            "pod/pi-worker-1",
            "job/pi-launcher",
        )
    ]


def test_policies_of_a_closed_network_are_compared(diff: Diff, namespace: Kubectl) -> None:
    """CTL-6: as the job, or the administrator, asks; PodGroups of a cluster that has none not."""
    made(namespace)
    closed = ("--network-policy-default=restricted", "--gang-scheduling=gangs")
    assert diff(JOB).returncode == 0
    ended = diff(JOB, "--network-policy-default=restricted")
    assert ended.stdout.splitlines() == [
        "networkpolicy/pi-workers: would be created",
        "networkpolicy/pi-launcher: would be created",
    ]
    ended = diff(JOB, *closed)
    assert "podgroup" not in ended.stdout + ended.stderr


def test_nothing_differs_once_all_is_there(diff: Diff, namespace: Kubectl) -> None:
    """Defaults, admission and stored forms of amounts are no differences."""
    made(namespace)
    ended = diff(JOB)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_that_kueue_holds_a_job_of_a_queue_is_no_difference(diff: Diff, namespace: Kubectl) -> None:
    made(namespace)
    hold = {"metadata": {"labels": {LABEL_QUEUE: "team"}}, "spec": {"runPolicy": {"suspend": True}}}
    namespace("patch", "mpijob", "pi", "--type=merge", f"--patch={json.dumps(hold)}")
    ended = diff(JOB)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    namespace("label", "mpijob", "pi", f"{LABEL_QUEUE}-")
    ended = diff(JOB)
    assert ended.returncode == 1, ended.stderr
    assert "spec.runPolicy.suspend" in ended.stdout


def test_every_change_is_told_where_it_takes_effect(diff: Diff, namespace: Kubectl) -> None:
    made(namespace)
    text = JOB.replace("slotsPerWorker: 1", "slotsPerWorker: 4").replace(
        "replicas: 2", "replicas: 1"
    )
    text = text.replace('cpu: "0.5", ', "")
    ended = diff(text, "-o", "json")
    assert ended.returncode == 1, ended.stderr
    told = {f"{one['kind']}/{one['name']}": one for one in json.loads(ended.stdout)}
    changes = {c["field"]: c for c in told["mpijob/pi"]["changes"]}
    assert changes["spec.slotsPerWorker"] == {
        "field": "spec.slotsPerWorker",
        "cluster": 1,
        "file": 4,
    }
    gone = next(c for name, c in changes.items() if name.endswith("limits.cpu"))
    assert "file" not in gone
    assert told["pod/pi-worker-1"]["state"] == "would be removed"
    assert told["configmap/pi-config"]["changes"][0]["field"] == "data.hostfile"
    assert "service/pi" not in told


def test_pods_that_a_suspended_job_does_not_have_are_no_difference(
    diff: Diff, namespace: Kubectl
) -> None:
    suspended = JOB.replace("spec:\n", "spec:\n  runPolicy: {suspend: true}\n", 1)
    namespace("create", "-f", "-", data=suspended)
    assert diff(suspended).stdout == ""


def test_trouble_has_an_exit_code_and_words_of_its_own(diff: Diff, tmp_path: Path) -> None:
    ended = diff(JOB, "--kubeconfig", str(tmp_path / "none"))
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: ")
    assert "Traceback" not in ended.stderr
    assert diff(JOB.replace("replicas: 2", "replicas: -2")).returncode == 2


def test_a_server_that_knows_no_mpijobs_is_told_from_one_without_the_job(
    diff: Diff, namespace: Kubectl, tmp_path: Path
) -> None:
    """Below this path the server serves no kind at all."""
    elsewhere = tmp_path / "kubeconfig"
    server = namespace.spec.api_url
    text = namespace.spec.kubeconfig.read_text()
    assert server in text
    elsewhere.write_text(text.replace(server, f"{server}/none"))
    ended = diff(JOB, "--kubeconfig", str(elsewhere))
    assert ended.returncode == 2
    assert "install the custom resource definitions" in ended.stderr
