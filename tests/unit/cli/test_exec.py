"""Which pod `odh mpijob exec` enters where none is named."""

from __future__ import annotations

import pytest

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.cli.verbs.mpijob.exec import pod_of
from mpi_trainer.sdk.backends.backend import JobDetails, PodInfo
from mpi_trainer.sdk.backends.views import mpijob_view
from mpi_trainer.sdk.errors import JobError

NODES = tuple(PodInfo(f"node-{n}", "worker", n, "Running", True) for n in (1, 0))
LAUNCHER = PodInfo("first", "launcher", 0, "Running", True)


def test_the_launcher_is_entered_or_the_worker_that_is_named() -> None:
    seen = JobDetails(mpijob_view(MPIJob(), {}), (*NODES, LAUNCHER))
    assert (pod_of(seen, None), pod_of(seen, 1)) == ("first", "node-1")


def test_an_mpijob_without_its_launcher_is_not_entered_elsewhere() -> None:
    with pytest.raises(JobError, match="has no launcher now"):
        pod_of(JobDetails(mpijob_view(MPIJob(), {}), NODES), None)


def test_a_job_of_a_kind_without_launchers_is_entered_at_its_first_node() -> None:
    assert pod_of(JobDetails(mpijob_view(MPIJob(kind="TrainJob"), {}), NODES), None) == "node-0"
