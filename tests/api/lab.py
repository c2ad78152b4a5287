"""A namespace with a kubelet and a controller, for tests of the controller on a real API server."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.admin import JOBS, Admin, Object, Refusal
from tests.api.kubelet import NODE, Kubelet
from tests.api.running import Controller
from tests.cluster import Kubectl, eventually
from tools.cluster.spec import Spec

CRD = Path(__file__).parents[2] / "manifests/crds/kubeflow.org_mpijobs.yaml"


@pytest.fixture(scope="session")
def served(api_server: Spec) -> Spec:
    """The API server, with our CRD and a node for pods to be on."""
    kubectl = Kubectl(api_server)
    kubectl("apply", "-f", str(CRD))
    # Not `kubectl wait`: it fails where the definition has no conditions yet.
    eventually("mpijobs are served", lambda: not kubectl.attempt("get", "mpijobs").returncode)
    kubectl.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    return api_server


@pytest.fixture
def admin(served: Spec) -> Iterator[Admin]:
    """A fresh namespace."""
    name = f"lab-{secrets.token_hex(4)}"
    one = Admin(served, name)
    one.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    eventually("account", lambda: one.get("api/v1/serviceaccounts/default") is not None)
    yield one
    for pod in one.pods():
        # Pods without a kubelet, and those whose controller is gone, would hold the namespace up.
        path = f"api/v1/pods/{pod['metadata']['name']}"
        try:
            one.patch(path, {"metadata": {"finalizers": None}})
        except Refusal as refusal:
            assert refusal.code == 404, refusal
        one.delete(path, grace=0)
    one.call("DELETE", f"/api/v1/namespaces/{name}")
    one.close()


@pytest.fixture
def kubelet(admin: Admin) -> Iterator[Kubelet]:
    with Kubelet(admin) as one:
        yield one
    assert one.faults == []


@pytest.fixture
def controller(admin: Admin) -> Iterator[Controller]:
    with Controller.alone(admin.spec.kubeconfig, admin.namespace) as one:
        yield one
        assert '"logger":"mpi_trainer.runtime.workers","msg":"failed' not in one.log(), one.log()


def submit(admin: Admin, job: Object) -> Object:
    return admin.create(f"{JOBS}/mpijobs", job)


def until(admin: Admin, kind: str, name: str = "pi", seconds: float = 60) -> Object:
    """Waits until the job's condition holds; the condition."""
    try:
        eventually(f"{name} is {kind}", lambda: admin.holds(kind, name), seconds)
    except AssertionError as error:
        pods = [(p["metadata"]["name"], p["status"].get("phase")) for p in admin.pods()]
        shown = json.dumps(admin.job(name).get("status"), indent=1)
        raise AssertionError(f"{error}\n{shown}\n{pods}") from None
    return admin.conditions(name)[kind]
