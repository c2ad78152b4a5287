"""A TrainJob as it is described, before anybody is asked about it."""

from __future__ import annotations

import pytest
import yaml

from mpi_trainer.local.jobs import shipped_runtimes
from mpi_trainer.sdk.backends.local.backend import LocalBackend
from mpi_trainer.sdk.job.trainjob import with_program
from openshift_ai_sdk.training import (
    AsyncTrainJob,
    InvalidJob,
    NotShippable,
    ResourceRequirements,
    RuntimeRef,
    TrainJob,
    TrainJobClient,
    TrainJobSpec,
)

HERE = LocalBackend()


def described(**more: object) -> TrainJob:
    given = {"command": ["python", "train.py"], "backend": HERE, **more}
    return TrainJob("t", "torch-distributed", **given)  # type: ignore[arg-type]


def work(number: int) -> None:
    print(number)


def test_few_words_are_a_whole_manifest() -> None:
    job = described(num_nodes=2, env={"A": "$(B)"}, resources=ResourceRequirements(cpu=2, gpu=1))
    job.validate()
    spec = yaml.safe_load(job.to_yaml())["spec"]
    needs = {"cpu": 2, "nvidia.com/gpu": 1}
    assert spec["runtimeRef"] == {"name": "torch-distributed", "kind": "ClusterTrainingRuntime"}
    assert spec["trainer"] == {
        "command": ["python", "train.py"],
        "env": [{"name": "A", "value": "$$(B)"}],
        "numNodes": 2,
        "resourcesPerNode": {"requests": needs, "limits": needs},
    }
    assert repr(job) == "<TrainJob t: not seen yet>"
    card = job._repr_html_()
    assert "TrainJob t" in card and "torch-distributed" in card


def test_manifest_is_read_back_as_text_and_as_a_dict() -> None:
    job = described()
    for manifest in (job.to_yaml(), job.to_dict()):
        again = AsyncTrainJob.from_manifest(manifest, backend=HERE)
        assert (again.name, again.namespace) == ("t", "default")
        assert again.spec.trainer == job.spec.trainer
    two = f"{job.to_yaml()}---\n{job.to_yaml().replace('name: t', 'name: u')}"
    with pytest.raises(ValueError, match="holds 2 TrainJobs; give one at a time"):
        TrainJob.from_manifest(two)
    with pytest.raises(InvalidJob, match=r"spec\.runtimeRef"):
        TrainJob.from_manifest({**job.to_dict(), "spec": {}})


@pytest.mark.parametrize("field", ["command", "args"])
def test_text_in_place_of_words_is_refused(field: str) -> None:
    with pytest.raises(ValueError, match=rf"{field} must be a list .* \['python', 'a.py'\]"):
        described(**{field: "python a.py"})


def test_job_that_makes_no_sense_goes_nowhere() -> None:
    with pytest.raises(InvalidJob, match=r"metadata\.name"):
        TrainJob("NOT a name", "torch-distributed", backend=HERE).create()
    with pytest.raises(ValueError, match="name is missing"):
        spec = TrainJobSpec(runtime_ref=RuntimeRef(name="torch-distributed"))
        TrainJobClient(backend=HERE).create(spec)
    with pytest.raises(NotShippable, match="a lambda"):
        TrainJob.from_function(lambda: None, runtime="torch-distributed")


@pytest.mark.parametrize(
    ("runtime", "begin"),
    [
        ("mpi-openmpi-cpu", ("mpirun", "-n", "6", "python", "-m", "mpi4py", "-c")),
        ("torch-distributed", ("torchrun", "--no-python", "python", "-c")),
    ],
)
def test_function_is_started_as_its_runtime_starts_ranks(
    runtime: str, begin: tuple[str, ...]
) -> None:
    job = TrainJob.from_function(
        work, runtime=runtime, args=[7], num_nodes=3, num_proc_per_node=2, backend=HERE
    )
    assert job.name.startswith("work-")
    found = shipped_runtimes.runtime(runtime)
    assert found is not None
    command = with_program(job._placed(), job._program, found).trainer.command or ()
    assert command[:-1] == begin
    assert "def work(number: int)" in command[-1] and "[7]" in command[-1]


def test_a_state_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="state: 'Runing' is not one of Created, Running"):
        TrainJobClient(backend=HERE).list(state="Runing")
