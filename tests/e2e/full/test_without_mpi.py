"""TrainJobs without MPI over two real nodes: PyTorch by torchrun and gloo, and plain commands.

The image with PyTorch is built where it is not there yet, which takes minutes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.api.running import Controller
from tests.cluster import Kubectl
from tests.e2e.manifests import Object
from tests.e2e.test_mpijob import USER
from tests.e2e.test_trainjob import RUNTIMES, Trained, submit, train_job
from tools.cluster.spec import Spec

PLAIN = "plain-of-tests"
NODES = 2
PROCESSES = 2
ALL_REDUCE = """\
import os, socket, torch
import torch.distributed as world
world.init_process_group("gloo")
rank, size = world.get_rank(), world.get_world_size()
total = torch.full((1000,), rank + 1.0)
world.all_reduce(total)
hosts = [None] * size
world.all_gather_object(hosts, socket.gethostname())
good = bool((total == size * (size + 1) / 2).all())
print(f"{rank=} {size=} {good=} uid={os.getuid()} by={world.get_backend()} {hosts=}", flush=True)
"""
# torchrun's words come from nothing but the variables that the job's pods have.
# Python 3.11 has no zero among a flag's members, where this torchrun looks for "redirect nothing";
# so it is told of a process that is not there.
NOTHING = ["--redirects=9:1", "--tee=9:1"]
TORCHRUN = ["python3", "-m", "torch.distributed.run", *NOTHING, "--no_python", "python3", "-c"]
# The first node ends last, so that a job which waits for one node only is found out.
TOLD = 'sleep $((4 - 4 * JOB_COMPLETION_INDEX)); echo "node $JOB_COMPLETION_INDEX is $(hostname)"'

pytestmark = pytest.mark.timeout(400, func_only=True)
Image = Callable[[str], str]


@pytest.fixture
def home(operator: Controller, cluster: Spec, namespace: Kubectl) -> Iterator[Kubectl]:
    """A namespace under OpenShift's rules; the runtime of torch that we ship, and a plain one."""
    kubectl = Kubectl(cluster)
    kubectl("apply", f"--filename={RUNTIMES / 'torch-distributed.yaml'}")
    kubectl.apply(plain_runtime())
    yield namespace
    kubectl("delete", "clustertrainingruntime", PLAIN, "--wait=false")


def plain_runtime() -> Object:
    """One without any policy: its command runs on every node, and nothing is told to it."""
    container = {"name": "node", "image": "none"}
    label = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    node = {
        "name": "node",
        "template": {"metadata": label, "spec": {"backoffLimit": 0, "template": pod}},
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": PLAIN},
        "spec": {
            "mlPolicy": {"numNodes": 1},
            "template": {"spec": {"replicatedJobs": [node]}},
        },
    }


def on_two_machines(name: str, runtime: str, **trainer: Any) -> Object:
    """A job whose nodes must not share a machine."""
    own = {"matchLabels": {"jobset.sigs.k8s.io/jobset-name": name}}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": own}
    rule = "requiredDuringSchedulingIgnoredDuringExecution"
    pod = {"affinity": {"podAntiAffinity": {rule: [term]}}}
    patch = {"name": "node", "template": {"spec": {"template": {"spec": pod}}}}
    return train_job(name, runtime, {"numNodes": NODES, **trainer}, patches=[patch])


def machines(job: Trained) -> set[str]:
    return {pod["spec"]["nodeName"] for pod in job.pods()}


def said(job: Trained) -> str:
    """What all nodes wrote."""
    names = sorted(pod["metadata"]["name"] for pod in job.pods())
    return "".join(job.kubectl("logs", name, "--container=node") for name in names)


def test_torchrun_reduces_by_gloo_over_two_nodes(home: Kubectl, image: Image) -> None:
    """API-2: two processes on each of two machines, as a user that no image knows."""
    job = submit(
        home,
        on_two_machines(
            "gloo",
            "torch-distributed",
            image=image("mpi-torch"),
            numProcPerNode=PROCESSES,
            command=[*TORCHRUN, ALL_REDUCE],
        ),
    )
    job.until("Complete", seconds=300)
    lines = re.findall(r"rank=(\d) size=4 good=True uid=(\d+) by=gloo hosts=(.*)", said(job))
    assert sorted(rank for rank, *_ in lines) == list("0123"), said(job)
    assert {int(uid) for _, uid, _ in lines} == {USER}
    hosts = [f"gloo-node-0-{index}" for index in range(NODES) for _ in range(PROCESSES)]
    assert {where for *_, where in lines} == {str(hosts)}
    assert len(machines(job)) == NODES


def test_a_plain_command_runs_on_both_nodes_and_the_job_waits_for_both(
    home: Kubectl, image: Image
) -> None:
    """API-2: no policy, so neither keys nor variables of ours."""
    command = ["sh", "-c", f"env; {TOLD}"]
    job = submit(home, on_two_machines("plain", PLAIN, image=image("mpi-openmpi"), command=command))
    assert job.until("Complete")["reason"] == "AllJobsCompleted"
    lines = [line for line in said(job).splitlines() if line.startswith("node ")]
    assert lines == ["node 0 is plain-node-0-0", "node 1 is plain-node-0-1"]
    assert not re.search(r"^(PET_|OMPI_|PRTE_|MPI_TRAINER_)", said(job), re.MULTILINE)
    assert "plain-" not in home("get", "secrets", "-o", "name")
    assert len(machines(job)) == NODES
    assert job.finding("phase") == "Succeeded"


def test_one_bad_node_of_a_plain_job_fails_it_at_once(home: Kubectl, image: Image) -> None:
    """AC-9: the cause names the node, and the other one does not run on."""
    script = '[ "$JOB_COMPLETION_INDEX" = 0 ] && exec sleep 1000; exit 3'
    command = ["sh", "-c", script]
    job = submit(
        home, on_two_machines("half-bad", PLAIN, image=image("mpi-openmpi"), command=command)
    )
    assert job.until("Failed", seconds=120)["reason"] == "FailedJobs"
    assert "half-bad-node-0-1" in job.finding("cause")
    assert "exit code 3" in job.finding("cause")
