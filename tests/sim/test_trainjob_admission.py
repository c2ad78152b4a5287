"""Admission of a TrainJob while the API server is slow or broken: bounded, and answered."""

from __future__ import annotations

import asyncio
import time

import pytest

from mpi_trainer.kube.client import Client
from mpi_trainer.kube.resources import CLUSTER_TRAINING_RUNTIMES, TRAINJOBS
from mpi_trainer.webhook.review import AdmissionRequest, GroupVersionKind, RequestUser
from mpi_trainer.webhook.server_checks import CheckResult, ServerChecks
from mpi_trainer.webhook.trainjob.server_checks import TrainJobChecks
from tests.sim.faults import Fault
from tests.sim.server import Server
from tests.unit.api.traincases import PATCHES
from tests.unit.api.trainers import loaded, patch, runtime, train_job

SECONDS = 0.4


def asked(*faults: Fault, there: bool = True, **pod: str) -> CheckResult:
    """What is found of a job whose runtime `there` is, or is not."""

    async def run() -> CheckResult:
        async with Server(faults) as server, Client(server.config) as client:
            if there:
                server.put(CLUSTER_TRAINING_RUNTIMES, runtime())
            checks = TrainJobChecks(ServerChecks(client, SECONDS))
            job = loaded(train_job((PATCHES, [patch("node", **pod)])))
            return await checks.result(job, RequestUser(username="eve"))

    return asyncio.run(run())


@pytest.mark.parametrize("kind", ["hang", "drop", "answer"])
def test_job_is_refused_where_its_runtime_cannot_be_asked_for(kind: str) -> None:
    """S-7: nobody knows what it asks, so nobody can have been asked for the rights to it."""
    began = time.monotonic()
    errors, _ = asked(Fault(kind, path="clustertrainingruntimes", times=9))  # type: ignore[arg-type]
    assert time.monotonic() - began < 5 * SECONDS + 2
    assert "the runtime could not be read in 0.4 s" in str(errors[0])
    assert "try again" in str(errors[0])


def test_missing_runtime_refuses_the_job() -> None:
    errors, _ = asked(there=False)
    assert "there is no ClusterTrainingRuntime of this name" in str(errors[0])


def test_right_that_cannot_be_asked_for_is_not_granted() -> None:
    hang = Fault("hang", path="subjectaccessreviews", times=9)
    errors, _ = asked(hang, serviceAccountName="admin")
    assert "act as this service account, and whether eve may" in str(errors[0])
    assert "could not be asked in time" in str(errors[0])


def test_pods_that_cannot_be_tried_are_a_warning() -> None:
    errors, warnings = asked(Fault("hang", path="/pods", times=9))
    assert errors == ()
    assert any("whether the cluster would take the pods" in str(one) for one in warnings)


def edits(*faults: Fault, jobs: int, at_once: int) -> tuple[list[str], list[int]]:
    """What is said of edits of a runtime that so many jobs use, and the sizes of the pages that
    were asked for."""
    edit = AdmissionRequest(
        kind=GroupVersionKind(kind="TrainingRuntime"), namespace="team", name="torch"
    )

    async def run() -> tuple[list[str], list[int]]:
        async with Server(faults) as server, Client(server.config) as client:
            for n in range(jobs):
                ref = {"kind": "TrainingRuntime", "name": "torch"}
                meta = {"name": f"train-{n:03}", "namespace": "team"}
                server.put(TRAINJOBS, {"metadata": meta, "spec": {"runtimeRef": ref}})
            checks = TrainJobChecks(ServerChecks(client, SECONDS if faults else 30.0))
            said = await asyncio.gather(*(checks.runtime_warnings(edit) for _ in range(at_once)))
            asked = [int(one.query["limit"]) for one in server.sent("GET", "trainjobs")]
            return [str(one) for answer in said for one in answer], asked

    return asyncio.run(run())


def test_jobs_of_a_runtime_are_read_in_small_pages() -> None:
    """S-15: 500 TrainJobs of the largest size are more than the webhook's memory."""
    said, pages = edits(jobs=50, at_once=1)
    assert "by 50 TrainJobs here" in said[0]
    assert len(pages) == 3
    assert max(pages) <= 20


def test_jobs_of_a_runtime_are_read_for_one_edit_at_a_time() -> None:
    """S-15: 32 reviews at once would hold 32 pages."""
    said, pages = edits(Fault("hang", path="trainjobs", times=9), jobs=1, at_once=8)
    assert said == []
    assert len(pages) <= 2, "the time of all ends at once: one may get its turn just before"
