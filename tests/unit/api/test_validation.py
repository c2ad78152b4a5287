"""Rules that the broken files do not show, each with its field and its remedy (CTL-4)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from mpi_trainer.api.errors import REQUIRED, Path
from mpi_trainer.api.kinds.mpijob import MPIJob, MPIJobSpec, ReplicaSpec, RunPolicy
from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.api.validation import mpijob as mpijob_rules
from mpi_trainer.api.validation import mpijob_warnings
from mpi_trainer.api.yaml import load
from tests.unit.api.building import (
    CONTAINER,
    GANG,
    LAUNCHER_POD,
    POD,
    POLICY,
    ROLES,
    errors,
    job,
    warnings,
)

META: Path = ("metadata",)
ENV: Path = (*CONTAINER, "env")


def test_sound_job_has_no_errors_and_no_warnings() -> None:
    assert errors() == []
    assert warnings() == []


@pytest.mark.parametrize(
    ("path", "value", "part"),
    [
        ((*META, "name"), "-x", "metadata.name: Invalid value"),
        ((*META, "name"), "x" * 70, "use at most 54 characters"),
        ((*META, "namespace"), "A", "metadata.namespace: Invalid value"),
        ((*META, "labels"), {"a/b/c": "x"}, "metadata.labels[a/b/c]: Invalid value"),
        ((*META, "annotations"), {"a": "x" * 300_000}, "metadata.annotations: Too long"),
        ((*POLICY, "ttlSecondsAfterFinished"), -1, "ttlSecondsAfterFinished: Invalid value: -1"),
        ((*POLICY, "backoffLimit"), -1, "backoffLimit: Invalid value: -1: must be at least 0"),
        ((*POLICY, "cleanPodPolicy"), "", "cleanPodPolicy: Unsupported value"),
        ((*GANG, "minAvailable"), -1, "minAvailable: Invalid value: -1"),
        ((*GANG, "priorityClass"), "Ä", "priorityClass: Invalid value"),
        ((*GANG, "minResources"), {"cpu": -1}, "minResources.cpu: Invalid value: -1: must not be"),
        ((*GANG, "minResources"), {"a b": 1}, "minResources[a b]: Invalid value"),
        (("spec", "slotsPerWorker"), -1, "slotsPerWorker: Invalid value: -1: must be at least 1"),
        (("spec", "sshAuthMountPath"), "/a:b", "must not contain `:`"),
        ((*ROLES, "Master"), {}, "Master: Unknown field"),
        ((*ROLES, "Master"), {}, "use Launcher and Worker only"),
        ((*CONTAINER, "name"), "", "containers[0].name: Required value"),
        ((*CONTAINER, "envFrom"), [{}], "envFrom[0]: Invalid value: must have either"),
        ((*CONTAINER, "envFrom"), [{"secretRef": {}}], "secretRef.name: Required value"),
        (ENV, [{"value": "x"}], "env[0].name: Required value"),
        (
            ENV,
            [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "a"}}}],
            "env[0].valueFrom: Forbidden: must not be set beside value",
        ),
        (ENV, [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}], "key: Required"),
        (ENV, [{"name": "A", "valueFrom": {"configMapKeyRef": {"key": "s"}}}], "name: Required"),
        (
            ENV,
            [{"name": "A", "valueFrom": {"fieldRef": {}, "resourceFieldRef": {"resource": "x"}}}],
            "must have exactly one source",
        ),
        ((*POD, "volumes"), [{}], "volumes[0].name: Required value"),
        ((*POD, "volumes"), [{"name": "a"}, {"name": "a"}], "volumes[1].name: Duplicate value"),
        ((*POD, "volumes"), [{"name": "ssh-auth"}], "the job adds a volume of this name itself"),
        ((*POD, "volumes"), [{"name": "A"}], "volumes[0].name: Invalid value"),
        ((*POD, "volumes"), [{"name": "a", "hostPath": {}}], "hostPath.path: Required value"),
        ((*POD, "volumes"), [{"name": "a", "secret": {}}], "secret.secretName: Required value"),
        (
            (*POD, "volumes"),
            [{"name": "a", "persistentVolumeClaim": {}}],
            "persistentVolumeClaim.claimName: Required value",
        ),
        (
            (*POD, "volumes"),
            [{"name": "a", "emptyDir": {"sizeLimit": "x"}}],
            "emptyDir.sizeLimit: Invalid value",
        ),
        ((*CONTAINER, "volumeMounts"), [{}], "volumeMounts[0].name: Required value"),
        ((*CONTAINER, "volumeMounts"), [{}], "volumeMounts[0].mountPath: Required value"),
        (
            (*CONTAINER, "volumeMounts"),
            [{"name": "ssh-auth", "mountPath": "/a:b", "subPath": "../x"}],
            "mountPath: Invalid value",
        ),
        (
            (*CONTAINER, "volumeMounts"),
            [{"name": "ssh-auth", "mountPath": "/a", "subPath": "../x"}],
            "subPath: Invalid value",
        ),
        (
            (*CONTAINER, "resources"),
            {"requests": {"hugepages-2Mi": "4Mi"}},
            "limits.hugepages-2Mi: Required value",
        ),
        (
            (*CONTAINER, "resources"),
            {"limits": {"Bad_/gpu": 1}},
            "limits[Bad_/gpu]: Invalid value",
        ),
    ],
)
def test_rule_names_its_field(path: Path, value: Any, part: str) -> None:
    assert any(part in error for error in errors((path, value))), errors((path, value))


def test_launcher_may_not_redefine_or_cover_the_hostfile_volume() -> None:
    found = errors(
        ((*LAUNCHER_POD, "volumes"), [{"name": "mpi-job-config"}, {"name": "x"}]),
        (
            (*LAUNCHER_POD, "containers", 0, "volumeMounts"),
            [{"name": "x", "mountPath": "/etc/mpi"}],
        ),
    )
    assert ["the job adds a volume" in found[0], "`mpi-job-config`" in found[1]] == [True, True]


def test_longest_name_fits_and_one_letter_more_does_not() -> None:
    """V1: a worker's pod name and hostname have 63 characters."""
    workers = (*ROLES, "Worker", "replicas")
    assert errors((("metadata", "name"), "a" * 54), (workers, 10)) == []
    assert "use at most 54" in errors((("metadata", "name"), "a" * 55), (workers, 10))[0]
    assert "use at most 53" in errors((("metadata", "name"), "a" * 54), (workers, 11))[0]


def test_generated_name_leaves_room_for_its_ending() -> None:
    meta = ("metadata",)
    assert errors((meta, {"generateName": "a" * 48 + "-"})) == []
    assert "use at most 49" in errors((meta, {"generateName": "a" * 49 + "-"}))[0]


def test_extended_resources_need_no_request() -> None:
    assert errors(((*CONTAINER, "resources"), {"limits": {"nvidia.com/gpu": 1}})) == []


def test_request_of_unreadable_amount_is_reported_once() -> None:
    found = errors(((*CONTAINER, "resources"), {"requests": {"cpu": "x"}, "limits": {"cpu": 1}}))
    assert len(found) == 1


def test_request_below_its_limit_is_fine() -> None:
    amounts = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": 1}}
    assert errors(((*CONTAINER, "resources"), amounts)) == []


def test_job_without_defaults_lacks_what_upstream_requires() -> None:
    """V2, V4, V5, V9, V11, V17, V18."""
    bare = MPIJob(spec=MPIJobSpec(mpi_replica_specs={"Launcher": ReplicaSpec()}))
    missing = {error.field for error in mpijob_rules.errors(bare) if error.problem == REQUIRED}
    assert missing == {
        "metadata.name",
        "spec.slotsPerWorker",
        "spec.mpiImplementation",
        "spec.launcherCreationPolicy",
        "spec.sshAuthMountPath",
        "spec.runPolicy.cleanPodPolicy",
        "spec.mpiReplicaSpecs.Launcher.replicas",
        "spec.mpiReplicaSpecs.Launcher.restartPolicy",
        "spec.mpiReplicaSpecs.Launcher.template.spec.containers",
    }


def test_template_of_wrong_types_is_an_error_and_not_an_exception() -> None:
    value = load.job(job()).value
    assert isinstance(value, MPIJob)
    broken = ReplicaSpec(replicas=1, restart_policy="Never", template=PodTemplate.of({"spec": 3}))
    spec = replace(value.spec, mpi_replica_specs={"Launcher": broken})
    found = [str(error) for error in mpijob_rules.errors(replace(value, spec=spec))]
    assert any("Launcher.template.spec: Invalid type: 3" in error for error in found)


def test_misspelt_launcher_is_not_reported_as_missing_too() -> None:
    found = errors((ROLES, {"launcher": {}}))
    assert found == [
        "spec.mpiReplicaSpecs.launcher: Unknown field: a job has a Launcher and a Worker,"
        " no other replicas; did you mean `Launcher`?"
    ]


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ([((*POD, "restartPolicy"), "Always")], "is replaced by Never"),
        (
            [
                ((*GANG, "minAvailable"), 3),
                ((*GANG, "minResources"), {"cpu": "4"}),
                ((*GANG, "priorityClass"), "high"),
            ],
            "minAvailable, minResources, priorityClass have no effect unless your",
        ),
        ([((*GANG, "priorityClass"), "high")], "priorityClass has no effect"),
        ([(("spec", "sshAuthMountPath"), "x/.ssh")], "is taken as /x/.ssh"),
        (
            [((*CONTAINER, "volumeMounts"), [{"name": "ssh-auth", "mountPath": "keys"}])],
            "is taken as /keys",
        ),
        ([(ENV, [{"name": "A"}, {"name": "A"}])], "the last one wins"),
        ([(ENV, [{"name": "my-var"}])], "no shell can export"),
        ([((*CONTAINER, "resources"), {"limits": {"memory": "512m"}})], "less than one MiB"),
        ([((*CONTAINER, "resources"), {"limits": {"nvidia.com/gpu": 2}})], "without a rank"),
        (
            [((*LAUNCHER_POD, "containers", 0, "resources"), {"limits": {"nvidia.com/gpu": 1}})],
            "does not see them",
        ),
        ([((*CONTAINER, "resource"), {})], "did you mean `resources`?"),
    ],
)
def test_suspicious_job_is_accepted_with_a_warning(
    changes: list[tuple[Path, Any]], part: str
) -> None:
    [warning] = warnings(*changes)
    assert part in warning


def test_warnings_of_a_bare_job_do_not_raise() -> None:
    bare = MPIJob(spec=MPIJobSpec(run_policy=RunPolicy()))
    assert len(mpijob_warnings.warnings(bare)) == 1


def test_unreadable_amounts_are_neither_gpus_nor_memory() -> None:
    amounts = {"limits": {"nvidia.com/gpu": "x", "memory": "y"}}
    value = load.job(job(((*CONTAINER, "resources"), amounts))).value
    assert isinstance(value, MPIJob)
    assert mpijob_warnings.warnings(value) == ()
