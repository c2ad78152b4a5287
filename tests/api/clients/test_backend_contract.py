"""The contract of every Backend, on a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_trainer.api.kinds.runtime import to_wire
from mpi_trainer.local.jobs import shipped_runtimes
from mpi_trainer.sdk.backends.backend import Backend, QueueInfo
from mpi_trainer.sdk.errors import JobError
from openshift_ai_sdk.training import connect
from tests.api.admin import Admin, Object
from tests.api.lab import admin, served
from tests.backend_contract import (
    RUNTIME,
    mpijob,
    test_copy_is_a_job_of_its_own_like_the_original,
    test_job_of_each_kind_is_seen_as_one_neutral_value,
    test_jobs_are_watched_from_what_is_there_over_what_comes_to_what_goes,
    test_one_job_is_watched_until_it_is_gone,
    test_pages_hold_every_job_once_and_what_the_list_says_of_it,
    test_usage_of_a_job_without_pods_says_so_and_one_that_is_not_there_is_left_out,
    test_what_a_new_job_can_choose_from,
)
from tests.cluster import Kubectl, eventually
from tools.cluster.spec import Spec

__all__ = [
    "admin",
    "served",
    "test_copy_is_a_job_of_its_own_like_the_original",
    "test_job_of_each_kind_is_seen_as_one_neutral_value",
    "test_jobs_are_watched_from_what_is_there_over_what_comes_to_what_goes",
    "test_one_job_is_watched_until_it_is_gone",
    "test_pages_hold_every_job_once_and_what_the_list_says_of_it",
    "test_usage_of_a_job_without_pods_says_so_and_one_that_is_not_there_is_left_out",
    "test_what_a_new_job_can_choose_from",
]

CRDS = Path(__file__).parents[3] / "manifests/crds"
QUEUES: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "localqueues.kueue.x-k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
    },
    "spec": {
        "group": "kueue.x-k8s.io",
        "names": {"kind": "LocalQueue", "plural": "localqueues", "singular": "localqueue"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def trainer(served: Spec) -> Spec:
    """The API server with TrainJobs and a runtime that we ship."""
    kubectl = Kubectl(served)
    kubectl("apply", "--server-side", "-k", str(CRDS))
    for plural in ("trainjobs", "clustertrainingruntimes"):
        eventually(plural, lambda p=plural: not kubectl.attempt("get", p).returncode)  # type: ignore[misc]
    runtime = shipped_runtimes.runtime(RUNTIME)
    assert runtime is not None
    kubectl.apply(to_wire(runtime))
    return served


@pytest.fixture
def backend(trainer: Spec, admin: Admin) -> Backend:
    return connect(kubeconfig=trainer.kubeconfig, namespace=admin.namespace)


@pytest.fixture
def kueue(trainer: Spec) -> Iterator[None]:
    kubectl = Kubectl(trainer)
    kubectl.apply(QUEUES)
    eventually("queues", lambda: not kubectl.attempt("get", "localqueues").returncode)
    yield
    kubectl("delete", "crd", "localqueues.kueue.x-k8s.io")


@pytest.mark.usefixtures("kueue")
def test_queues_of_the_namespace_are_named_with_their_counts(
    backend: Backend, admin: Admin
) -> None:
    queue: Object = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "LocalQueue",
        "metadata": {"name": "team"},
        "spec": {"clusterQueue": "gpus"},
        "status": {"pendingWorkloads": 2, "admittedWorkloads": 1},
    }
    admin.create("apis/kueue.x-k8s.io/v1beta1/localqueues", queue)
    found = asyncio.run(_queues(backend))
    assert found == [QueueInfo(admin.namespace, "team", "gpus", pending=2, admitted=1)]


async def _queues(backend: Backend) -> list[QueueInfo]:
    return [*await backend.queues(backend.namespace)]


def test_page_with_a_token_that_is_no_longer_good_is_an_error_that_says_what_to_do(
    backend: Backend,
) -> None:
    async def read() -> None:
        for n in range(2):
            await backend.create(mpijob(backend, f"job-{n}"))
        page = await backend.list_page(backend.namespace, 1)
        assert page.token
        await backend.list_page(backend.namespace, 1, "mpijobs:not-a-token")

    with pytest.raises(JobError, match="continue"):
        asyncio.run(read())
