"""A job before anybody runs it: made from words, a function, a spec or a manifest."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import yaml

from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.sdk.job.specs import MPIJobSpec, ReplicaSpec
from openshift_ai_sdk.training import AsyncMPIJob, MPIJob, ResourceRequirements, VolumeMount


def words(job: MPIJob) -> list[str]:
    spec = job.to_dict()["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    command: list[str] = spec["containers"][0]["command"]
    return command


def train(epochs: int) -> None:
    print(epochs, "$HOME")


def test_every_word_reaches_the_manifest() -> None:
    job = MPIJob(
        "train",
        "team",
        4,
        "quay.io/team/train:1",
        ["python", "train.py"],
        resources=ResourceRequirements(cpu=2, memory="4Gi", gpu=1),
        volume_mounts=[VolumeMount("/data", claim="digits")],
        env={"SEED": "1"},
        node_selector={"zone": "a"},
        mpi="mpich",
    )
    assert (job.name, job.namespace, job.workers, job.slots) == ("train", "team", 4, 1)
    text = job.to_yaml()
    for word in ("MPICH", "quay.io/team/train:1", "nvidia.com/gpu", "digits", "SEED", "zone"):
        assert word in text
    job.validate()


def test_manifest_makes_the_same_job_again() -> None:
    job = MPIJob("train", command=["./a"], slots=2)
    for manifest in (job.to_dict(), job.to_yaml()):
        again = MPIJob.from_manifest(manifest)
        assert yaml.safe_load(again.to_yaml())["spec"]["slotsPerWorker"] == 2
        assert words(again) == words(job)
        assert again.key == job.key


def test_manifest_without_a_namespace_gets_the_default_one() -> None:
    data = MPIJob("train", command=["./a"]).to_dict()
    del data["metadata"]["namespace"]
    assert MPIJob.from_manifest(data).namespace == "default"


def test_wrong_manifest_is_refused_with_everything_at_once() -> None:
    data = MPIJob("train", command=["./a"]).to_dict()
    data["spec"]["slotsPerWorker"] = 0
    data["metadata"]["name"] = "Train"
    with pytest.raises(InvalidJob) as caught:
        MPIJob.from_manifest(data)
    assert len(caught.value.errors) == 2


def test_two_jobs_in_one_text_are_refused() -> None:
    one, two = MPIJob("one", command=["./a"]).to_yaml(), MPIJob("two", command=["./a"]).to_yaml()
    with pytest.raises(ValueError, match="2 jobs"):
        MPIJob.from_manifest(f"{one}---\n{two}")


def test_spec_gets_its_name() -> None:
    spec = MPIJobSpec(launcher=ReplicaSpec(command=["./a"]), worker=ReplicaSpec(replicas=2))
    assert MPIJob.from_spec("t", spec, "team").key == AsyncMPIJob.from_spec("t", spec, "team").key


def test_senseless_job_is_refused_before_it_is_sent() -> None:
    with pytest.raises(ValueError, match=r"spec.mpiReplicaSpecs.Worker.replicas"):
        MPIJob("t", command=["./a"], workers=-1).validate()


def test_command_as_one_text_is_refused_with_the_words() -> None:
    with pytest.raises(ValueError, match=r"\['python', 'train.py'\]"):
        MPIJob("t", command="python train.py")


@pytest.mark.parametrize(("name", "answer"), [("opnmpi", "did you mean `OpenMPI`"), ("x", "MPICH")])
def test_unknown_mpi_is_answered_with_the_known_ones(name: str, answer: str) -> None:
    with pytest.raises(ValueError, match=answer):
        MPIJob("t", command=["./a"], mpi=name)


def test_function_runs_under_this_python_here_and_the_image_s_elsewhere() -> None:
    here = words(MPIJob.from_function(train, args=[3], slots=2))
    assert here[:7] == ["mpirun", "-n", "4", sys.executable, "-m", "mpi4py", "-c"]
    there = words(MPIJob.from_function(train, kwargs={"epochs": 3}, image="i"))
    assert there[3] == "python"
    assert "$$HOME" in there[-1], "a kubelet makes $$ into $"


def test_function_s_job_is_named_after_it_and_new_every_time() -> None:
    one, two = (MPIJob.from_function(train, args=[1]) for _ in range(2))
    assert one.name.startswith("train-") and one.name != two.name
    assert MPIJob.from_function(train, args=[1], name="mine").name == "mine"
    one.validate()


def test_job_that_fails_is_not_tried_again_unless_asked() -> None:
    assert MPIJob("t", command=["./a"]).to_dict()["spec"]["runPolicy"]["backoffLimit"] == 0


def test_job_shows_itself_without_asking_anybody() -> None:
    job = MPIJob("t", command=["./a"], backend=_Nobody())
    assert repr(job) == "<MPIJob t: not seen yet>"
    assert "not created" in job._repr_html_()


class _Nobody:
    """Not a backend: whoever asks it fails."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked for")
