"""Large jobs and many jobs, on a control plane with a hundred fake nodes (API-6).

KWOK places and runs the pods, and ends launchers after three seconds; everything else is real.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.api.admin import JOBS as MPIJOBS
from tests.api.admin import Admin, Object
from tests.api.lab import CRD, submit, until
from tests.api.running import Controller, job
from tests.cluster import Kubectl, define, eventually, shared_cluster
from tools.cluster.spec import Spec

LABEL = "training.kubeflow.org/job-name"
WORKERS = 4
JOBS = 100


@pytest.fixture(scope="module")
def fake_nodes() -> Iterator[Spec]:
    yield from shared_cluster(Spec(name="test-kwok", profile="kwok"))


@pytest.fixture
def admin(fake_nodes: Spec) -> Iterator[Admin]:
    """A fresh namespace with our controller."""
    define(Kubectl(fake_nodes), CRD.parent, "mpijobs")
    name = f"many-{secrets.token_hex(4)}"
    one = Admin(fake_nodes, name)
    one.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    eventually("account", lambda: one.get("api/v1/serviceaccounts/default") is not None)
    try:
        with Controller.alone(fake_nodes.kubeconfig, name):
            yield one
            for made in one.every(f"{MPIJOBS}/mpijobs"):
                one.delete(f"{MPIJOBS}/mpijobs/{made['metadata']['name']}")
        one.call("DELETE", f"/api/v1/namespaces/{name}")
    finally:
        one.close()


def by_job(pods: list[Object]) -> Counter[str]:
    return Counter(pod["metadata"]["labels"][LABEL] for pod in pods)


def test_a_job_of_64_workers_completes(admin: Admin) -> None:
    submit(admin, job(64, "wide", cleanPodPolicy="None"))
    until(admin, "Succeeded", "wide", 180)
    workers = admin.pods("worker")
    names = {pod["metadata"]["name"] for pod in workers}
    assert names == {f"wide-worker-{index}" for index in range(64)}
    assert len({pod["spec"]["nodeName"] for pod in workers}) > 1
    assert admin.job("wide")["status"]["replicaStatuses"]["Launcher"]["succeeded"] == 1


@pytest.mark.timeout(600, func_only=True)
def test_a_hundred_jobs_at_once_all_complete_with_their_own_workers(admin: Admin) -> None:
    names = [f"job-{index}" for index in range(JOBS)]
    for name in names:
        submit(admin, job(WORKERS, name, cleanPodPolicy="None"))
    for name in names:
        until(admin, "Succeeded", name, 300)
    assert by_job(admin.pods("worker")) == dict.fromkeys(names, WORKERS)
    assert by_job(admin.pods("launcher")) == dict.fromkeys(names, 1)
