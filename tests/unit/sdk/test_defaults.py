"""TrainJobs as a cluster takes them: mpirun is asked for ranks before lines, and nobody else is."""

from __future__ import annotations

import pytest

from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.local.jobs import shipped_runtimes
from mpi_trainer.sdk.backends.cluster.defaults import TAG_OPTION, with_ranks

OPTIONS = {
    "mpi-openmpi-cpu": "--tag-output",
    "mpi-openmpi5-cpu": "--tag-output",
    "mpi-intel-cpu": "-prepend-pattern=[1,%r]<stdout>:",
    "mpi-mpich-cpu": "-prepend-pattern=[1,%r]<stdout>:",
}


def job(runtime: str, **env: str) -> TrainJob:
    variables = [{"name": name, "value": value} for name, value in env.items()]
    spec = {"runtimeRef": {"name": runtime}, "trainer": {"numNodes": 2, "env": variables}}
    return decode(TrainJob, {"metadata": {"name": "train"}, "spec": spec}).value


def given(runtime: str, **env: str) -> dict[str, str]:
    found = shipped_runtimes.runtime(runtime)
    assert found is not None
    return {one["name"]: one["value"] for one in with_ranks(job(runtime, **env), found).trainer.env}


@pytest.mark.parametrize("runtime", OPTIONS)
def test_each_mpi_is_asked_in_its_own_words(runtime: str) -> None:
    """AC-9."""
    assert given(runtime, A="1") == {"A": "1", TAG_OPTION: OPTIONS[runtime]}


def test_a_job_without_mpi_stays_as_it_is() -> None:
    assert given("torch-distributed", A="1") == {"A": "1"}


def test_whoever_has_said_it_already_is_not_contradicted() -> None:
    assert given("mpi-openmpi-cpu", **{TAG_OPTION: ""}) == {TAG_OPTION: ""}
