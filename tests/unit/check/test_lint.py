"""What reading a job or a runtime shows, beyond what validation says (RT-1)."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.api.errors import SUSPICIOUS, FieldError, Path
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml import load
from mpi_trainer.check import lint
from mpi_trainer.layout.agent.paths import PORT
from mpi_trainer.local.jobs import shipped_runtimes
from tests.unit.api import building, trainers
from tests.unit.api.building import CONTAINER, LAUNCHER_POD, POD, ROLES

SOUND = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
SSHD = (*CONTAINER, "command")
NEEDS = (*CONTAINER, "resources", "requests")
OWN_NEEDS = (*LAUNCHER_POD, "containers", 0, "resources", "requests")
META = (*ROLES, "Worker", "template", "metadata")
CONTEXT = (*CONTAINER, "securityContext")


def found(*changes: tuple[Path, Any], restricted: bool = False) -> list[FieldError]:
    value = load.job(building.job(*changes)).value
    assert isinstance(value, MPIJob)
    return list(lint.mpijob_lint(value, restricted=restricted))


def runtime(*changes: tuple[Path, Any]) -> Runtime:
    value = load.runtime(trainers.runtime(*changes)).value
    assert isinstance(value, Runtime)
    return value


def train_job(*changes: tuple[Path, Any]) -> TrainJob:
    value = load.train_job(trainers.train_job(*changes)).value
    assert isinstance(value, TrainJob)
    return value


def test_nothing_is_said_of_a_sound_job() -> None:
    assert found() == []


@pytest.mark.parametrize("name", shipped_runtimes.names())
def test_nothing_is_said_of_the_runtimes_that_we_ship(name: str) -> None:
    value = shipped_runtimes.runtime(name)
    assert value is not None
    assert lint.runtime_lint(value, restricted=True) == ()


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        pytest.param(
            [(("spec", "slotsPerWorker"), 8), (NEEDS, {"cpu": "2"}), (OWN_NEEDS, {"cpu": 1})],
            "spec.slotsPerWorker",
            "8 ranks share the 2 CPUs of a worker",
            id="slots",
        ),
        pytest.param(
            [(NEEDS, {"cpu": "2"})],
            "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].resources",
            "asks for no CPU or memory",
            id="launcher",
        ),
        pytest.param(
            [((*CONTAINER, "image"), "example.com/other:2")],
            "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].image",
            "the launcher's image is another",
            id="images",
        ),
        pytest.param(
            [
                ((*p, "image"), "x/mpich-train")
                for p in (CONTAINER, (*LAUNCHER_POD, "containers", 0))
            ],
            "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].image",
            "looks like an image for MPICH",
            id="implementation",
        ),
        pytest.param(
            [(SSHD, ["sleep", "infinity"])],
            "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].command",
            "workers run no sshd",
            id="sshd",
        ),
        pytest.param(
            [
                (SSHD, ["/usr/sbin/sshd", "-De"]),
                ((*POD, "securityContext"), {"runAsNonRoot": True}),
            ],
            "spec.mpiReplicaSpecs.Worker.template.spec.securityContext.runAsNonRoot",
            "which only root reads",
            id="keys",
        ),
        pytest.param(
            [((*META, "labels"), {lint.INJECT: "true"})],
            f"spec.mpiReplicaSpecs.Worker.template.metadata.labels[{lint.INJECT}]",
            "Istio adds a sidecar",
            id="sidecar",
        ),
        pytest.param(
            [((*POD, "hostNetwork"), True)],
            "spec.mpiReplicaSpecs.Worker.template.spec.hostNetwork",
            f"its port {PORT}",
            id="hostNetwork",
        ),
        pytest.param(
            [((*CONTAINER, "ports"), [{"containerPort": 80, "hostPort": 80}])],
            "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].ports[0].hostPort",
            "two workers cannot be on one node",
            id="hostPort",
        ),
        pytest.param(
            [
                (
                    (*POD, "containers"),
                    [
                        {"name": "main", "image": "example.com/train:1"},
                        {"name": "web", "image": "w", "ports": [{"containerPort": PORT}]},
                    ],
                )
            ],
            "spec.mpiReplicaSpecs.Worker.template.spec.containers[1].ports[0].containerPort",
            "the sshd of the worker uses this port",
            id="port",
        ),
        pytest.param(
            [(CONTEXT, {"runAsUser": 0})],
            "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].securityContext.runAsUser",
            "it runs as root",
            id="root",
        ),
        pytest.param(
            [(CONTEXT, {"privileged": True})],
            "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].securityContext.privileged",
            "it is privileged",
            id="privileged",
        ),
        pytest.param(
            [(CONTEXT, {"capabilities": {"add": ["SYS_PTRACE"]}})],
            "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].securityContext.capabilities",
            "it adds a capability",
            id="capability",
        ),
    ],
)
def test_what_is_suspicious_is_named_with_its_field(
    changes: list[tuple[Path, Any]], field: str, words: str
) -> None:
    (one,) = found(*changes)
    assert (one.field, one.problem) == (field, SUSPICIOUS)
    assert words in one.rule
    assert one.remedy


def test_a_sidecar_that_is_left_out_is_no_warning() -> None:
    assert found(((*META, "annotations"), {lint.INJECT: "false"})) == []


ROLE_NAMES = ("Launcher", "Worker")


def test_what_the_restricted_profile_demands_is_an_error_where_it_is_enforced() -> None:
    first = found(restricted=True)
    assert len(first) == 8
    assert all(one.problem != SUSPICIOUS for one in first)
    sound = [
        ((*ROLES, role, "template", "spec", "containers", 0, "securityContext"), SOUND)
        for role in ROLE_NAMES
    ]
    assert found(*sound, restricted=True) == []


def test_a_job_without_workers_has_nothing_between_pods() -> None:
    job = building.job((("spec", "runLauncherAsWorker"), True))
    del job["spec"]["mpiReplicaSpecs"]["Worker"]
    value = load.job(job).value
    assert isinstance(value, MPIJob)
    assert lint.mpijob_lint(value) == ()


def test_ranks_of_a_trainjob_are_held_against_its_slots() -> None:
    command = ["mpirun", "-n", "9", "x"]
    job = train_job((("spec", "trainer"), {"command": command, "numNodes": 2}))
    (one,) = lint.trainjob_lint(job, runtime())
    assert one.field == "spec.trainer.command"
    assert "9 ranks, and the job has 2 slots" in one.rule
    assert one.remedy == "add numNodes or numProcPerNode, or allow it with --oversubscribe"


def test_slots_of_a_trainjob_are_named_where_they_are_said() -> None:
    trainer = {"numProcPerNode": 4, "resourcesPerNode": {"limits": {"cpu": "1"}}}
    (one,) = lint.trainjob_lint(train_job((("spec", "trainer"), trainer)), runtime())
    assert one.field == "spec.trainer.numProcPerNode"


def test_a_launcher_that_only_starts_ranks_needs_resources_in_its_runtime() -> None:
    (one,) = lint.runtime_lint(runtime(((*trainers.MPI, "runLauncherAsNode"), False)))
    assert one.field.endswith(
        "replicatedJobs[1].template.spec.template.spec.containers[0].resources"
    )


def test_a_runtime_without_mpi_has_other_rules() -> None:
    value = load.runtime(trainers.torch()).value
    assert isinstance(value, Runtime)
    assert lint.runtime_lint(value) == ()
    assert lint.trainjob_lint(train_job(), value) == ()
