"""The Go controllers that we are compared with run real MPI jobs on this cluster.

They have a cluster of their own: on a shared one they and our controller would both act on the
same jobs.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from tests.cluster import Kubectl, shared_cluster
from tests.e2e.manifests import Object
from tools.cluster import images
from tools.cluster.spec import Spec
from tools.cluster.user_images import USER_IMAGES, build_image

IMAGE = USER_IMAGES["mpi-openmpi"]
SSHD = ["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"]
PROGRAM = (
    "import platform; from mpi4py import MPI; w = MPI.COMM_WORLD; "
    "h = sorted(set(w.allgather(platform.node()))); "
    "w.rank == 0 and print(f'ranks={w.size} hosts={len(h)}')"
)
READY = {"tcpSocket": {"port": 2222}, "periodSeconds": 1}

pytestmark = pytest.mark.timeout(300, func_only=True)


@pytest.fixture(scope="module")
def peers() -> Iterator[Spec]:
    """A cluster on which both Go controllers run."""
    addons = ("dns", "jobset", "mpi-operator", "trainer")
    for spec in shared_cluster(Spec(name="test-peers", profile="full", addons=addons)):
        images.load(spec, [build_image(IMAGE)])
        yield spec


@pytest.fixture
def plain(peers: Spec) -> Iterator[Kubectl]:
    """A namespace without OpenShift's rules: the peers' images want a fixed user id."""
    name = f"test-{secrets.token_hex(4)}"
    kubectl = Kubectl(peers, name)
    kubectl("create", "namespace", name)
    yield kubectl
    kubectl("delete", "namespace", name, "--wait=false")


def container(name: str, **fields: object) -> Object:
    return {
        "name": name,
        "image": IMAGE.reference,
        "imagePullPolicy": "Never",
        "securityContext": {"runAsUser": 1000},
        "resources": {"requests": {"cpu": "100m"}},
        **fields,
    }


def _spread(labels: dict[str, str]) -> list[Object]:
    return [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": labels},
        }
    ]


def test_the_mpi_operator_runs_a_two_node_job(plain: Kubectl) -> None:
    command = ["mpirun", "-n", "4", "--bind-to", "none", "python3", "-c", PROGRAM]
    labels = {"training.kubeflow.org/job-name": "ring", "training.kubeflow.org/job-role": "worker"}
    worker = {
        "topologySpreadConstraints": _spread(labels),
        "containers": [container("worker", command=SSHD, readinessProbe=READY)],
    }
    launcher = {"containers": [container("launcher", command=command)]}
    plain.apply(
        {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": {"name": "ring"},
            "spec": {
                "slotsPerWorker": 2,
                "sshAuthMountPath": "/home/mpiuser/.ssh",
                "launcherCreationPolicy": "WaitForWorkersReady",
                "runPolicy": {"cleanPodPolicy": "Running"},
                "mpiReplicaSpecs": {
                    "Launcher": {"replicas": 1, "template": {"spec": launcher}},
                    "Worker": {"replicas": 2, "template": {"spec": worker}},
                },
            },
        }
    )
    plain.wait("--for=condition=Succeeded", "mpijob/ring", seconds=120)
    assert "ranks=4 hosts=2" in plain("logs", "-l", "training.kubeflow.org/job-role=launcher")


def mpi_runtime(name: str) -> Object:
    def replicated(job: str, container: Object, **template: Object) -> Object:
        pod = {"securityContext": {"fsGroup": 1000}, "containers": [container]}
        return {"name": job, "template": {**template, "spec": {"template": {"spec": pod}}}}

    step = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    launcher = replicated("launcher", container("node"), metadata=step)
    launcher["dependsOn"] = [{"name": "node", "status": "Ready"}]
    node = replicated("node", container("node", command=SSHD, readinessProbe=READY))
    mpi = {
        "numProcPerNode": 1,
        "mpiImplementation": "OpenMPI",
        "sshAuthMountPath": "/home/mpiuser/.ssh",
        "runLauncherAsNode": True,
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "mpi"}},
        "spec": {
            # One, not two: this launcher carries the trainer step, so the number is its own.
            "mlPolicy": {"numNodes": 1, "mpi": mpi},
            "template": {
                "spec": {
                    "network": {"publishNotReadyAddresses": True},
                    "successPolicy": {"operator": "All", "targetReplicatedJobs": ["launcher"]},
                    "replicatedJobs": [node, launcher],
                }
            },
        },
    }


def test_the_trainer_runs_a_two_node_job(plain: Kubectl) -> None:
    runtime = plain.namespace
    plain.apply(mpi_runtime(runtime))
    command = ["mpirun", "-n", "2", "--bind-to", "none", "python3", "-c", PROGRAM]
    plain.apply(
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "ring"},
            "spec": {
                "runtimeRef": {"name": runtime},
                "trainer": {"numNodes": 2, "command": command},
            },
        }
    )
    plain.wait("--for=condition=Complete", "trainjob/ring", seconds=180)
    logs = plain("logs", "-l", "jobset.sigs.k8s.io/replicatedjob-name=launcher", "--tail=-1")
    assert "ranks=2 hosts=2" in logs
    plain("delete", "clustertrainingruntime", runtime)
