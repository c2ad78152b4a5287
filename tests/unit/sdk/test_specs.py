"""Jobs described role by role, and what the interfaces add to them (AC-7, AC-11, CTL-15)."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.api.defaults import mpijob_with_defaults
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, MPIJob, RunPolicy
from mpi_trainer.api.validation import mpijob as mpijob_rules
from mpi_trainer.api.validation import mpijob_warnings
from mpi_trainer.sdk.job.new import NewJob
from mpi_trainer.sdk.job.specs import (
    MPIJobSpec,
    ReplicaSpec,
    ResourceRequirements,
    VolumeMount,
    amounts,
    named_mounts,
    volume_source,
)

GPUS = ResourceRequirements(cpu=4, memory="16Gi", gpu=2)


def pod(job: MPIJob, role: str) -> dict[str, Any]:
    spec: dict[str, Any] = (job.spec.mpi_replica_specs or {})[role].template.content["spec"]
    return spec


def container(job: MPIJob, role: str) -> dict[str, Any]:
    first: dict[str, Any] = pod(job, role)["containers"][0]
    return first


def sound(job: MPIJob) -> MPIJob:
    assert mpijob_rules.errors(mpijob_with_defaults(job)) == ()
    assert mpijob_warnings.warnings(mpijob_with_defaults(job)) == ()
    return job


def spec(**changes: Any) -> MPIJobSpec:
    launcher = ReplicaSpec(image="i", command=["python", "train.py"])
    worker = ReplicaSpec(image="i", replicas=3, resources=GPUS)
    return MPIJobSpec(**{"launcher": launcher, "worker": worker, **changes})


def test_slots_are_the_gpus_of_a_worker() -> None:
    """CTL-15."""
    job = sound(spec().manifest("t"))
    assert job.slots == 2
    assert container(job, LAUNCHER)["command"][:3] == ["mpirun", "-n", "6"]
    assert sound(NewJob("t", ("a",), resources=GPUS).mpijob()).slots == 2


def test_slots_that_are_given_stand() -> None:
    assert spec(slots_per_worker=4).manifest("t").slots == 4
    assert NewJob("t", ("a",), slots=4, resources=GPUS).mpijob().slots == 4
    assert NewJob("t", ("a",)).mpijob().slots == 1


def test_gpus_are_asked_for_exactly_and_by_workers_alone() -> None:
    """AC-11: the launcher starts ranks and needs no device."""
    job = NewJob("t", ("a",), resources=GPUS).mpijob()
    amounts = {"cpu": 4, "memory": "16Gi", "nvidia.com/gpu": 2}
    assert container(job, WORKER)["resources"] == {"requests": amounts, "limits": amounts}
    assert "resources" not in container(job, LAUNCHER)


def test_other_devices_can_be_asked_for() -> None:
    other = ResourceRequirements(gpu=1, gpu_type="amd.com/gpu", other={"rdma/ib": 1})
    assert amounts(other) == {"amd.com/gpu": 1, "rdma/ib": 1}


def test_launcher_that_runs_ranks_counts() -> None:
    job = spec(run_launcher_as_worker=True, slots_per_worker=1).manifest("t")
    assert container(job, LAUNCHER)["command"][:3] == ["mpirun", "-n", "4"]
    assert job.spec.run_launcher_as_worker is True


def test_command_to_be_left_as_it_is_is_left_as_it_is() -> None:
    job = spec(as_is=True).manifest("t")
    assert container(job, LAUNCHER)["command"] == ["python", "train.py"]


def test_pods_are_removed_at_the_end_unless_told_otherwise() -> None:
    """CTL-15."""
    assert spec().manifest("t").spec.run_policy.clean_pod_policy == "Running"
    kept = spec(run_policy=RunPolicy(clean_pod_policy="None", suspend=True)).manifest("t")
    assert kept.spec.run_policy == RunPolicy(clean_pod_policy="None", suspend=True)


def test_retries_of_a_short_job_stand_beside_its_policy() -> None:
    job = NewJob("t", ("a",), backoff_limit=3, run_policy=RunPolicy(active_deadline_seconds=60))
    assert job.mpijob().spec.run_policy == RunPolicy(
        clean_pod_policy="Running", backoff_limit=3, active_deadline_seconds=60
    )


@pytest.mark.parametrize(
    ("policy", "tries"),
    [
        (RunPolicy(), 0),
        (RunPolicy(ttl_seconds_after_finished=60), 0),
        (RunPolicy(backoff_limit=2), 2),
    ],
)
def test_a_command_is_tried_once_unless_its_policy_says_otherwise(
    policy: RunPolicy, tries: int
) -> None:
    """L-4: `odh run`, `odh mpijob create` and the SDK build their jobs here."""
    assert NewJob("t", ("a",), run_policy=policy).mpijob().spec.run_policy.backoff_limit == tries


def test_volumes_of_every_kind_are_shown_to_launcher_and_workers() -> None:
    mounts = (
        VolumeMount("/data", claim="digits", read_only=True, sub_path="train"),
        VolumeMount("/here", host_path="/home/ann"),
        VolumeMount("/conf", config_map="settings"),
        VolumeMount("/keys", secret="s3"),
        VolumeMount("/scratch", empty_dir=True),
    )
    job = sound(NewJob("t", ("a",), volumes=mounts, node_selector=(("zone", "a"),)).mpijob())
    for role in (LAUNCHER, WORKER):
        assert pod(job, role)["nodeSelector"] == {"zone": "a"}
        assert pod(job, role)["volumes"] == [
            {"name": "volume-0", "persistentVolumeClaim": {"claimName": "digits"}},
            {"name": "volume-1", "hostPath": {"path": "/home/ann"}},
            {"name": "volume-2", "configMap": {"name": "settings"}},
            {"name": "volume-3", "secret": {"secretName": "s3"}},
            {"name": "volume-4", "emptyDir": {}},
        ]
        shown = container(job, role)["volumeMounts"]
        assert shown[0] == {
            "name": "volume-0",
            "mountPath": "/data",
            "subPath": "train",
            "readOnly": True,
        }
        assert shown[4] == {"name": "volume-4", "mountPath": "/scratch"}


@pytest.mark.parametrize("mount", [VolumeMount("/a"), VolumeMount("/a", claim="x", empty_dir=True)])
def test_volume_without_exactly_one_source_is_refused(mount: VolumeMount) -> None:
    with pytest.raises(ValueError, match=r"the volume at /a names [02] sources; name exactly one"):
        volume_source(mount)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "d"}, "volume_mounts[1].mountPath: must be a non-empty string"),
        ({"mountPath": "/d"}, "volume_mounts[1].name: must be a non-empty string"),
        ({"name": "d", "mountPath": 7}, "volume_mounts[1].mountPath: must be a non-empty string"),
        ({"name": "d", "mountpath": "/d"}, "unknown key 'mountpath'; did you mean `mountPath`?"),
        ({"name": "d", "mountPath": "/d", "x" * 9999: 1}, "it may have name, mountPath"),
        ({"name": "d", "mountPath": "/d", "readOnly": "no"}, "volume_mounts[1]: Expected `bool`"),
        ("data:/data", "volume_mounts[1]: must be a VolumeMount or a dict"),
    ],
)
def test_volume_mount_that_makes_no_sense_is_named_with_its_place(given: Any, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        named_mounts([VolumeMount("/x", claim="c"), given])
    assert said in str(caught.value) and len(str(caught.value)) < 300


def test_volume_mount_as_a_container_has_it() -> None:
    given = {"name": "d", "mountPath": "/d", "subPath": "s", "readOnly": True}
    (made,) = named_mounts([given])
    assert made == VolumeMount("/d", name="d", sub_path="s", read_only=True)
    assert volume_source(made) == {"persistentVolumeClaim": {"claimName": "d"}}
    with pytest.raises(ValueError, match="names 2 sources"):
        volume_source(VolumeMount("/d", name="d", secret="s"))
