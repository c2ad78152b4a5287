"""API-4: MPIJobs v1, v1alpha2 and v1alpha1 as v2beta1."""

from __future__ import annotations

import copy
import time
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_trainer.api.kinds.mpijob import to_wire
from mpi_trainer.api.yaml import load
from mpi_trainer.migrate.legacy import to_v2beta1
from mpi_trainer.migrate.legacy_pods import sleeps
from mpi_trainer.migrate.report import UNKNOWN
from tests.unit.migrate.cases import base, mpijobs, without_workers

JOBS = mpijobs()
V1 = yaml.safe_load("""
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: mnist, namespace: team, uid: x, annotations: {team: a}}
spec:
  slotsPerWorker: 1
  cleanPodPolicy: Running
  backoffLimit: 2
  mainContainer: mpi
  mpiDistribution: IntelMPI
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
          - {name: sidecar, image: b}
          - name: mpi
            image: a
            command: [mpirun, -np, "2", python, train.py]
            env:
            - {name: OMPI_MCA_plm_rsh_agent, value: /etc/mpi/kubexec.sh}
            - {name: SEED, value: "7"}
    Worker:
      replicas: 2
      restartPolicy: ExitCode
      template: {spec: {containers: [{name: mpi, image: a, command: [sleep, infinity]}]}}
""")
ALPHA = yaml.safe_load("""
apiVersion: kubeflow.org/v1alpha1
kind: MPIJob
metadata: {name: resnet}
spec:
  gpus: 16
  gpusPerNode: 8
  launcherOnMaster: true
  activeDeadlineSeconds: 60
  template: {spec: {containers: [{name: mpi, image: a, command: [mpirun, python, train.py]}]}}
""")


def converted(job: dict[str, Any]) -> dict[str, Any]:
    found = to_v2beta1(job)
    assert found.errors == ()
    assert UNKNOWN not in {one.note for one in found.fields}
    (made,) = found.objects
    assert load.job(made).errors == ()
    return made


def as_v1(job: dict[str, Any]) -> dict[str, Any]:
    """The same job as v1 had it; what only v2beta1 has is left out."""
    old = copy.deepcopy(job)
    old["apiVersion"] = "kubeflow.org/v1"
    spec = old["spec"]
    implementation = spec.pop("mpiImplementation", None)
    if implementation:
        spec["mpiDistribution"] = {"Intel": "IntelMPI"}.get(implementation, implementation)
    for name in ("runLauncherAsWorker", "sshAuthMountPath", "launcherCreationPolicy"):
        spec.pop(name, None)
    return old


def test_a_v1_job_has_its_policies_main_container_and_mpi() -> None:
    made = converted(V1)
    spec = made["spec"]
    assert made["metadata"] == {"name": "mnist", "namespace": "team", "annotations": {"team": "a"}}
    assert spec["runPolicy"] == {"cleanPodPolicy": "Running", "backoffLimit": 2}
    assert spec["mpiImplementation"] == "Intel"
    main, _ = spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    assert main["name"] == "mpi"
    assert main["env"] == [{"name": "SEED", "value": "7"}]


def test_a_worker_that_only_slept_runs_an_ssh_server() -> None:
    worker = converted(V1)["spec"]["mpiReplicaSpecs"]["Worker"]
    assert "command" not in worker["template"]["spec"]["containers"][0]
    assert worker["restartPolicy"] == "OnFailure"


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "sleep 365d"],
        ["tail", "-f"],
        ["tail", "-f", "/dev/null"],
        ["/bin/sh", "-c", "tail -f /dev/null"],
        ["/bin/bash", "-lc", "while true; do sleep 30; done;"],
        ["/bin/bash", "-c", "--", "while :; do sleep 30; done"],
        ["bash", "-c", "trap : TERM INT; sleep infinity & wait"],
        ["bash", "-c", "exec sleep inf\n"],
    ],
)
def test_a_worker_may_sleep_in_other_words(command: list[str]) -> None:
    job = copy.deepcopy(V1)
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    worker["command"] = command
    made = converted(job)["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert "command" not in made["containers"][0]


@pytest.mark.parametrize(
    "command",
    [
        ["/start.sh", "sleep"],
        ["sh", "-c", "service ssh start; sleep infinity"],
        ["sh", "-c", "/usr/sbin/sshd & sleep infinity"],
        ["sh", "-c", "sleep 5 | /usr/sbin/sshd"],
        ["sh", "-c", "sleep $(/start.sh)"],
        ["sleep"],
    ],
)
def test_a_worker_that_does_something_keeps_its_command(command: list[str]) -> None:
    job = copy.deepcopy(V1)
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    worker["command"] = command
    made = converted(job)["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert made["containers"][0]["command"] == command


@pytest.mark.parametrize(
    ("command", "told"),
    [(["/start.sh"], True), (["/usr/sbin/sshd", "-De"], False), (["sleep", "inf"], False)],
)
def test_a_kept_command_that_starts_no_ssh_server_is_told(command: list[str], told: bool) -> None:
    job = copy.deepcopy(V1)
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    worker["command"] = command
    assert any("start sshd" in one.remedy for one in to_v2beta1(job).fields) is told


def test_of_a_v1alpha1_worker_no_command_is_told_for_it_never_had_one() -> None:
    assert not any("sshd in it" in one.remedy for one in to_v2beta1(ALPHA).fields)


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_selectors_of_an_older_operators_labels_are_told(version: str) -> None:
    job = copy.deepcopy(V1 if version == "v1" else ALPHA)
    pod = job["spec"].get("template") or job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    expression = {"key": "mpi_job_name", "operator": "In", "values": ["mnist"]}
    term = {"labelSelector": {"matchExpressions": [expression]}, "topologyKey": "zone"}
    pod["spec"]["affinity"] = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    }
    assert any("training.kubeflow.org/job-name" in one.remedy for one in to_v2beta1(job).fields)


def test_an_owner_is_not_said_to_be_the_servers() -> None:
    job = copy.deepcopy(V1)
    job["metadata"]["ownerReferences"] = [{"kind": "Workflow", "name": "w"}]
    (told,) = (one for one in to_v2beta1(job).fields if one.field == "metadata.ownerReferences")
    assert "ties" in told.note


def test_a_script_of_very_many_words_is_read_in_linear_time() -> None:
    """An API server waits for this answer."""
    began = time.process_time()
    assert not sleeps({"command": ["sh", "-c", "do " * 300_000 + "; " * 300_000]})
    assert time.process_time() - began < 5


@pytest.mark.parametrize("version", ["kubeflow.org/v1", "kubeflow.org/v1alpha2"])
def test_fields_of_v2beta1_in_an_older_file_are_carried(version: str) -> None:
    """As in files whose version somebody changed back, or never changed."""
    later = {
        "mpiImplementation": "MPICH",
        "sshAuthMountPath": "/home/mpiuser/.ssh",
        "launcherCreationPolicy": "WaitForWorkersReady",
        "runLauncherAsWorker": True,
    }
    job = copy.deepcopy(V1) | {"apiVersion": version}
    job["spec"] |= later
    spec = converted(job)["spec"]
    assert {name: spec[name] for name in later} == later
    told = {one.field: one.fate for one in to_v2beta1(job).fields}
    assert {told[f"spec.{name}"] for name in later} == {"carried"}
    assert told["spec.mpiDistribution"] == "lost"


def test_what_is_said_twice_counts_as_the_run_policy_says_it() -> None:
    job = copy.deepcopy(V1)
    job["spec"]["runPolicy"] = {"cleanPodPolicy": "All", "suspend": True}
    found = to_v2beta1(job)
    assert found.objects[0]["spec"]["runPolicy"]["cleanPodPolicy"] == "All"
    (line,) = (one for one in found.fields if one.field == "spec.cleanPodPolicy")
    assert line.fate == "lost"


def test_a_command_that_names_the_old_script_is_told() -> None:
    job = copy.deepcopy(V1)
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][1]
    launcher["command"] = ["mpirun", "-mca", "plm_rsh_agent", "/etc/mpi/kubexec.sh", "x"]
    assert any("plm_rsh_agent" in one.remedy for one in to_v2beta1(job).fields)


def test_a_variable_of_another_mpi_that_names_the_old_script_is_told() -> None:
    job = copy.deepcopy(V1)
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][1]
    name = "I_MPI_HYDRA_BOOTSTRAP_EXEC"
    launcher["env"] = [{"name": name, "value": "/etc/mpi/kubexec.sh"}]
    assert any("remove the variable" in one.remedy for one in to_v2beta1(job).fields)


def test_v1alpha1_counts_workers_by_their_gpus() -> None:
    spec = converted(ALPHA)["spec"]
    worker = spec["mpiReplicaSpecs"]["Worker"]
    container = worker["template"]["spec"]["containers"][0]
    assert (worker["replicas"], spec["slotsPerWorker"]) == (2, 8)
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 8}
    assert "command" not in container
    launcher = spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    assert launcher["nodeSelector"] == {"node-role.kubernetes.io/master": ""}
    assert launcher["containers"][0]["command"][0] == "mpirun"


@pytest.mark.parametrize(
    ("fields", "workers", "slots", "guessed"),
    [
        ({"gpus": 4, "gpusPerNode": 8}, 1, 4, False),
        ({"gpus": 4}, 4, 1, True),
        ({"processingUnits": 8, "processingUnitsPerNode": 4, "processingResourceType": "cpu"}, 2, 4,
         False),
        ({"replicas": 3}, 3, 1, False),
        ({"replicas": 3, "slotsPerWorker": 5}, 3, 5, False),
    ],
)  # fmt: skip
def test_v1alpha1_has_several_ways_to_count(
    fields: dict[str, Any], workers: int, slots: int, guessed: bool
) -> None:
    job = copy.deepcopy(ALPHA)
    del job["spec"]["gpus"], job["spec"]["gpusPerNode"]
    job["spec"] |= fields
    spec = converted(job)["spec"]
    assert spec["mpiReplicaSpecs"]["Worker"]["replicas"] == workers
    assert spec["slotsPerWorker"] == slots
    assert any("units per node" in one.remedy for one in to_v2beta1(job).fields) is guessed


def test_gpus_of_a_v1alpha1_template_are_the_workers_slots_and_not_the_launchers() -> None:
    job = copy.deepcopy(ALPHA)
    del job["spec"]["gpus"], job["spec"]["gpusPerNode"]
    job["spec"]["replicas"] = 2
    limits = {"limits": {"nvidia.com/gpu": 4, "cpu": 2}}
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = limits
    spec = converted(job)["spec"]
    assert spec["slotsPerWorker"] == 4
    launcher = spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    assert launcher["resources"]["limits"] == {"cpu": 2}


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"gpus": 12}, "spec.gpus", "multiple of the 8"),
        ({"gpus": 0}, "spec.gpus", "1 or more"),
        ({"gpus": "many"}, "spec.gpus", "must be an integer"),
        ({"workers": 2}, "spec.workers", "no such field"),
    ],
)
def test_a_wrong_v1alpha1_job_is_refused_at_its_field(
    change: dict[str, Any], field: str, words: str
) -> None:
    job = copy.deepcopy(ALPHA)
    job["spec"] |= change
    found = to_v2beta1(job)
    assert found.objects == ()
    assert [(one.field, words in str(one)) for one in found.errors] == [(field, True)]


def test_v1alpha1_without_any_count_says_what_to_set() -> None:
    job = copy.deepcopy(ALPHA)
    del job["spec"]["gpus"]
    (error,) = to_v2beta1(job).errors
    assert (error.field, "number of workers" in error.remedy) == ("spec.replicas", True)


def test_a_v1_job_that_v2beta1_would_refuse_is_refused_in_its_words() -> None:
    job = copy.deepcopy(V1)
    del job["spec"]["mpiReplicaSpecs"]["Launcher"]
    assert any("Launcher" in error.field for error in to_v2beta1(job).errors)


@pytest.mark.parametrize("name", [n for n, j in JOBS.items() if not without_workers(j)])
def test_a_job_goes_to_v1_and_back(name: str) -> None:
    """API-4: as far as v1 had the fields; defaults filled in on both sides."""
    job = copy.deepcopy(JOBS[name])
    job.pop("status", None)
    old = as_v1(job)
    made = load.job(converted(old)).value
    wanted = copy.deepcopy(job)
    for field in ("runLauncherAsWorker", "sshAuthMountPath", "launcherCreationPolicy"):
        wanted["spec"].pop(field, None)
    again = load.job(wanted).value
    assert made is not None
    assert again is not None
    assert wire(made) == wire(again)


def wire(job: Any) -> Any:
    found = to_wire(job)
    found["metadata"].pop("annotations", None)
    for replica in found["spec"]["mpiReplicaSpecs"].values():
        for container in replica["template"]["spec"]["containers"]:
            if container.get("command", [""])[0].endswith(("sleep", "tail")):
                container.pop("command")
    return found


POLICY = st.fixed_dictionaries(
    {},
    optional={
        "cleanPodPolicy": st.sampled_from(["None", "Running", "All"]),
        "backoffLimit": st.integers(0, 100),
        "activeDeadlineSeconds": st.integers(0, 10**6),
        "ttlSecondsAfterFinished": st.integers(0, 10**6),
        "suspend": st.booleans(),
    },
)


@settings(max_examples=60, deadline=None)
@given(
    policy=POLICY,
    moved=st.sets(st.sampled_from(["cleanPodPolicy", "backoffLimit", "activeDeadlineSeconds"])),
    slots=st.integers(1, 64),
    workers=st.integers(1, 64),
    implementation=st.sampled_from(["OpenMPI", "Intel", "MPICH"]),
)
def test_any_v1_job_means_the_same_afterwards(
    policy: dict[str, Any], moved: set[str], slots: int, workers: int, implementation: str
) -> None:
    """API-4: wherever v1 had a policy, and however many fields it said."""
    wanted = base(slotsPerWorker=slots, runPolicy=policy, mpiImplementation=implementation)
    wanted["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = workers
    old = as_v1(wanted)
    for name in moved & policy.keys():
        old["spec"][name] = old["spec"]["runPolicy"].pop(name)
    made, again = load.job(converted(old)).value, load.job(wanted).value
    assert made == again
