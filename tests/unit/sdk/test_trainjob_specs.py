"""A job's description as a TrainJob: all of it, or not at all."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mpi_trainer.api.effective.combine import effective
from mpi_trainer.api.kinds.mpijob import RunPolicy, SchedulingPolicy
from mpi_trainer.api.kinds.trainjob import TrainJob, to_wire
from mpi_trainer.local.jobs import shipped_runtimes
from mpi_trainer.sdk.job import trainjob_specs
from mpi_trainer.sdk.job.specs import MPIJobSpec, ReplicaSpec, ResourceRequirements, VolumeMount

replace = msgspec.structs.replace
POD = ReplicaSpec(
    image="train:1",
    env={"PRICE": "5$"},
    volume_mounts=(VolumeMount("/data", claim="set", read_only=True),),
    node_selector={"zone": "a"},
)
SPEC = MPIJobSpec(
    launcher=replace(POD, command=("python", "train.py")),
    worker=replace(POD, replicas=3, resources=ResourceRequirements(gpu=2)),
    run_policy=RunPolicy(ttl_seconds_after_finished=60, active_deadline_seconds=90, suspend=True),
)


def made(spec: MPIJobSpec = SPEC) -> TrainJob:
    found = trainjob_specs.trainjob_from_spec(spec, "train", "team")
    assert found is not None
    return found


def test_all_that_is_described_is_in_the_job() -> None:
    wire = msgspec.json.decode(msgspec.json.encode(to_wire(made())))
    assert wire["metadata"] == {
        "name": "train",
        "namespace": "team",
        "annotations": {"mpi-trainer.opendatahub.io/ttl-seconds-after-finished": "60"},
    }
    spec = wire["spec"]
    (patch,) = spec.pop("runtimePatches")
    needs = {"nvidia.com/gpu": 2}
    assert spec == {
        "runtimeRef": {"name": "mpi-openmpi-cpu"},
        "trainer": {
            "image": "train:1",
            "command": ["mpirun", "-n", "6", "python", "train.py"],
            "env": [{"name": "PRICE", "value": "5$$"}],
            "numNodes": 3,
            "numProcPerNode": 2,
            "resourcesPerNode": {"requests": needs, "limits": needs},
        },
        "suspend": True,
        "activeDeadlineSeconds": 90,
    }
    jobs = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    assert [one["name"] for one in jobs] == ["launcher", "node"]


def test_launcher_and_nodes_have_the_pods_that_were_described() -> None:
    runtime = shipped_runtimes.runtime("mpi-openmpi-cpu")
    assert runtime is not None
    found = effective(made(), runtime)
    assert (found.pods, found.nodes, found.slots) == (3, 3, 2)
    for one in found.jobs:
        pod: dict[str, Any] = one.template.content["spec"]
        assert pod["nodeSelector"] == {"zone": "a"}
        (container,) = pod["containers"]
        assert container["image"] == "train:1"
        (mount,) = container["volumeMounts"]
        assert (mount["mountPath"], mount["readOnly"]) == ("/data", True)


@pytest.mark.parametrize(
    ("mpi", "runtime"),
    [("OpenMPI", "mpi-openmpi-cpu"), ("Intel", "mpi-intel-cpu"), ("MPICH", "mpi-mpich-cpu")],
)
def test_every_mpi_has_its_runtime(mpi: str, runtime: str) -> None:
    assert made(replace(SPEC, mpi_implementation=mpi)).spec.runtime_ref.name == runtime


@pytest.mark.parametrize(
    "change",
    [
        {"worker": replace(POD, replicas=1)},
        {"worker": replace(SPEC.worker, image="other:1")},
        {"worker": replace(SPEC.worker, env={})},
        {"worker": replace(SPEC.worker, command=("sshd",))},
        {"worker": replace(SPEC.worker, restart_policy="OnFailure")},
        {"launcher": replace(SPEC.launcher, resources=ResourceRequirements(cpu=1))},
        {"launcher_creation_policy": "WaitForWorkersReady"},
        {"run_policy": RunPolicy(backoff_limit=3)},
        {"run_policy": RunPolicy(clean_pod_policy="None")},
        {"run_policy": RunPolicy(scheduling_policy=SchedulingPolicy(min_available=2))},
    ],
)
def test_what_a_trainjob_cannot_say_stays_an_mpijob(change: dict[str, Any]) -> None:
    assert trainjob_specs.trainjob_from_spec(replace(SPEC, **change), "train", "team") is None
