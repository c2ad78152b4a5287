"""Admission of a TrainJob while the API server is slow or broken: bounded, and answered."""

from __future__ import annotations

import asyncio
import time

import pytest

from mpi_trainer.kube.client import Client
from mpi_trainer.kube.resources import CLUSTER_TRAINING_RUNTIMES
from mpi_trainer.webhook.review import RequestUser
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
