"""The job of a smoke run: small, apart, bounded, and otherwise as the job it stands for."""

from __future__ import annotations

import pytest

from mpi_trainer.api.errors import Path as FieldPath
from mpi_trainer.api.kinds.annotations import CODE, RECORD, SSH, TTL
from mpi_trainer.api.kinds.mpijob import MPIJob, to_wire
from mpi_trainer.api.kinds.trainjob import to_wire as train_wire
from mpi_trainer.api.validation import compatibility
from mpi_trainer.api.yaml import load
from mpi_trainer.check import smoke
from tests.unit.api import building
from tests.unit.api.building import LAUNCHER_POD, POD, ROLES
from tests.unit.check.test_lint import runtime, train_job

COMMAND = (*LAUNCHER_POD, "containers", 0, "command")
RUN = ("/opt/bin/mpirun", "--allow-run-as-root", "-np", "64", "--mca", "btl", "tcp", "-x", "A", "x")


def mpijob(*changes: tuple[FieldPath, object]) -> MPIJob:
    value = load.job(building.job(*changes)).value
    assert isinstance(value, MPIJob)
    return value


def test_a_large_job_becomes_two_pods_with_one_rank_each() -> None:
    job = mpijob(
        ((*ROLES, "Worker", "replicas"), 64),
        (("spec", "slotsPerWorker"), 8),
        (("spec", "runPolicy"), {"schedulingPolicy": {"queue": "q", "minAvailable": 65}}),
        (("metadata", "annotations"), {SSH: "managed", RECORD: "x", CODE: "y"}),
        (COMMAND, list(RUN)),
    )
    small = smoke.smoke_mpijob(job, "check-train-1", 330)
    assert (small.workers, small.slots, small.name) == (2, 1, "check-train-1")
    policy = small.spec.run_policy
    assert (policy.backoff_limit, policy.active_deadline_seconds) == (0, 330)
    assert policy.ttl_seconds_after_finished == smoke.KEPT_SECONDS
    assert policy.scheduling_policy is not None
    assert (policy.scheduling_policy.queue, policy.scheduling_policy.min_available) == ("q", None)
    assert small.metadata.annotations == {SSH: "managed"}
    words = small.launcher.template.view.spec.containers[0].command
    assert words[:2] == ("sh", "-c")
    assert words[4:6] == ("/opt/bin/mpirun", "as-is")
    assert words[7:] == ("--allow-run-as-root", "--mca", "btl", "tcp", "-x", "A")
    assert load.job(to_wire(small)).errors == ()


def test_workers_are_kept_apart_beside_what_the_job_asks_for() -> None:
    wish = {"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}
    field = "preferredDuringSchedulingIgnoredDuringExecution"
    job = mpijob(((*POD, "affinity"), {"podAntiAffinity": {field: [wish]}}))
    small = smoke.smoke_mpijob(job, "check-train-1", 330)
    found = small.worker.template.content["spec"]["affinity"]["podAntiAffinity"][field]
    assert found[0] == wish
    term = found[1]["podAffinityTerm"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"]["matchLabels"] == {"training.kubeflow.org/job-name": small.name}


def test_a_launcher_that_runs_ranks_is_one_of_the_two() -> None:
    small = smoke.smoke_mpijob(mpijob((("spec", "runLauncherAsWorker"), True)), "c", 9)
    assert small.workers == 1
    assert "affinity" in small.launcher.template.content["spec"]


def test_a_trainjob_keeps_its_runtime_and_becomes_two_nodes() -> None:
    trainer = {"command": ["mpirun", "-n", "64", "x"], "numNodes": 16, "image": "i:2"}
    job = train_job((("spec", "trainer"), trainer))
    small = smoke.smoke_trainjob(job, runtime(), "check-train-1", 330)
    assert small.spec.runtime_ref == job.spec.runtime_ref
    assert (small.trainer.num_nodes, small.trainer.num_proc_per_node) == (2, 1)
    assert (small.trainer.image, small.spec.active_deadline_seconds) == ("i:2", 330)
    assert small.metadata.annotations[TTL] == str(smoke.KEPT_SECONDS)
    (patch,) = small.spec.runtime_patches
    assert [one.name for one in patch.replicated_jobs] == ["launcher", "node"]
    assert load.train_job(train_wire(small)).errors == ()
    assert compatibility.errors(small, runtime()) == ()


def test_a_runtime_alone_allows_root_because_no_command_is_known() -> None:
    given = runtime()
    small = smoke.smoke_trainjob(smoke.job_of(given, "ns"), given, "check-mpi-1", 330)
    assert small.trainer.command is not None
    assert small.trainer.command[4:6] == ("mpirun", "allow")


def test_pods_of_a_runtime_in_a_file_are_tried_as_an_mpijob() -> None:
    given = runtime()
    made = smoke.as_mpijob(smoke.job_of(given, "ns"), given)
    small = smoke.smoke_mpijob(made, "check-mpi-1", 330, allow_root=True)
    assert (small.workers, small.spec.run_launcher_as_worker) == (1, True)
    assert load.job(to_wire(small)).errors == ()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("mpiexec", "-genv", "A", "1", "-n", "4", "x", "-x", "y"), ("-genv", "A", "1")),
        (("mpirun", "--unknown", "--mca", "a", "b", "x"), ()),
        (("python", "train.py", "-x", "A"), ()),
        (("horovodrun", "-np", "4", "x"), ()),
        ((), ()),
    ],
)
def test_options_of_mpirun_are_kept_up_to_one_that_is_not_known(
    words: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert smoke.options(words) == expected


def test_names_of_smoke_runs_are_names_of_jobs() -> None:
    assert smoke.smoke_name("a.b" + "x" * 60, "1f") == "check-a-b" + "x" * 17 + "-1f"
