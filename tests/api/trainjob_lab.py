"""An API server with TrainJobs and JobSets, and a controller; the test plays JobSet's controller.

What JobSet does to a JobSet's status is the test's choice; its pods do not exist here.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.admin import Admin, Object
from tests.api.running import Controller
from tests.cluster import Kubectl, api_spec, eventually, shared_cluster
from tools.cluster.build import build
from tools.cluster.components import JOBSET
from tools.cluster.spec import Spec

CRDS = Path(__file__).parents[2] / "manifests/crds"
TRAIN = "apis/trainer.kubeflow.org/v1alpha1"
SETS = "apis/jobset.x-k8s.io/v1alpha2"
OURS = "mpi-trainer.opendatahub.io"
KINDS = ("trainjobs", "trainingruntimes", "clustertrainingruntimes", "jobsets", "mpijobs")


@pytest.fixture(scope="session")
def train_server() -> Iterator[Spec]:
    """An API server with TrainJobs and JobSets, for all of these tests."""
    for spec in shared_cluster(api_spec("test-train")):
        install(Kubectl(spec))
        yield spec


@pytest.fixture(scope="module")
def api_server(train_server: Spec) -> Spec:
    """Not the other tests' one: some want it without JobSets."""
    return train_server


def install(kubectl: Kubectl) -> None:
    """The definitions of TrainJobs, runtimes and JobSets."""
    if kubectl.spec.oldest:
        pytest.skip("JobSet 0.12's own definition has a rule that Kubernetes 1.27 cannot read")
    sets = build([JOBSET])["jobset"].source / "config/components/crd/bases"
    kubectl("apply", "--server-side", "--force-conflicts", "-k", str(CRDS))
    kubectl("apply", "--server-side", "-f", str(sets))
    for kind in KINDS:
        # Not `kubectl wait`: it fails where a definition has no conditions yet.
        eventually(kind, lambda kind=kind: not kubectl.attempt("get", kind).returncode)  # type: ignore[misc]


@pytest.fixture
def admin(api_server: Spec) -> Iterator[Admin]:
    """A fresh namespace with a runtime for each policy that tests use."""
    one = Admin(api_server, f"train-{secrets.token_hex(4)}")
    one.call("POST", "/api/v1/namespaces", {"metadata": {"name": one.namespace}})
    for made in (mpi_runtime(), runtime("torch", {"torch": {}}), runtime("plain", {})):
        one.create(f"{TRAIN}/trainingruntimes", made)
    yield one
    one.call("DELETE", f"/api/v1/namespaces/{one.namespace}")
    one.close()


@pytest.fixture
def controller(admin: Admin) -> Iterator[Controller]:
    with Controller.alone(admin.spec.kubeconfig, admin.namespace) as one:
        yield one
        assert '"logger":"mpi_trainer.runtime.workers","msg":"failed' not in one.log(), one.log()


def replicated(name: str, ancestor: str = "", **container: Any) -> Object:
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": ancestor} if ancestor else {}
    pod = {"containers": [{"name": "node", "image": "x", **container}]}
    job = {"metadata": {"labels": labels}, "spec": {"template": {"spec": pod}}}
    return {"name": name, "template": job}


def runtime(name: str, policy: Object, *jobs: Object, **metadata: Any) -> Object:
    template = {"spec": {"replicatedJobs": list(jobs or (replicated("node", "trainer"),))}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": name, **metadata},
        "spec": {"mlPolicy": {"numNodes": 1, **policy}, "template": template},
    }


def mpi_runtime(name: str = "mpi", **metadata: Any) -> Object:
    policy = {"mpi": {"mpiImplementation": "OpenMPI", "sshAuthMountPath": "/home/mpiuser/.ssh"}}
    jobs = (replicated("node"), replicated("launcher", "trainer"))
    return runtime(name, policy, *jobs, **metadata)


def train_job(name: str = "pi", runtime: str = "mpi", **spec: Any) -> Object:
    metadata = {"name": name, **spec.pop("metadata", {})}
    trainer = {"numNodes": 2, "command": ["mpirun", "true"], **spec.pop("trainer", {})}
    ref = {"name": runtime, "kind": "TrainingRuntime"}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": metadata,
        "spec": {"runtimeRef": ref, "trainer": trainer, **spec},
    }


def submit(admin: Admin, job: Object) -> Object:
    return admin.create(f"{TRAIN}/trainjobs", job)


def job_of(admin: Admin, name: str = "pi") -> Object:
    found = admin.get(f"{TRAIN}/trainjobs/{name}")
    assert found is not None, f"TrainJob {name} is gone"
    return found


def job_set(admin: Admin, name: str = "pi") -> Object:
    """Waits for it."""
    eventually("JobSet", lambda: admin.get(f"{SETS}/jobsets/{name}") is not None)
    found = admin.get(f"{SETS}/jobsets/{name}")
    assert found is not None
    return found


def condition(admin: Admin, kind: str, name: str = "pi") -> Object | None:
    listed = job_of(admin, name).get("status", {}).get("conditions", [])
    return next((c for c in listed if c["type"] == kind), None)


def until(admin: Admin, kind: str, status: str = "True", name: str = "pi") -> Object:
    """Waits for a condition; the condition."""

    def reached() -> bool:
        found = condition(admin, kind, name)
        return found is not None and found["status"] == status

    try:
        eventually(f"{name} is {kind}", reached)
    except AssertionError as error:
        raise AssertionError(
            f"{error}\n{job_of(admin, name)}\n{admin.events('TrainJob')}"
        ) from None
    found = condition(admin, kind, name)
    assert found is not None
    return found


def finding(admin: Admin, name: str, job: str = "pi") -> str:
    """One of our annotations."""
    notes = job_of(admin, job)["metadata"].get("annotations", {})
    return str(notes.get(f"{OURS}/{name}", ""))


def end(admin: Admin, kind: str, reason: str, name: str = "pi") -> None:
    """The JobSet ends, as JobSet's controller would say it."""
    told = {"type": kind, "status": "True", "reason": reason, "message": f"{reason} it was"}
    told["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    done = {"succeeded": 1, "ready": 0, "failed": 0, "active": 0, "suspended": 0}
    status = {"conditions": [told], "replicatedJobsStatus": [{"name": "launcher", **done}]}
    admin.patch(f"{SETS}/jobsets/{name}/status", {"status": status})
