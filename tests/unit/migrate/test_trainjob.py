"""MIG-1: an MPIJob as a TrainJob with a runtime, which our admission takes."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation import compatibility
from mpi_trainer.api.yaml import load
from mpi_trainer.migrate.report import Converted
from mpi_trainer.migrate.trainjob import to_trainjob
from mpi_trainer.plan.migrated_pods import pod_differences
from tests.unit.migrate.cases import base, mpijobs, templates, without_workers

JOBS = mpijobs()
CONVERTIBLE = [name for name, job in JOBS.items() if not without_workers(job)]
DOMAIN = "mpi-trainer.opendatahub.io"


def converted(job: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], Converted]:
    found = to_trainjob(job)
    assert found.errors == ()
    runtime, train_job = found.objects
    return runtime, train_job, found


def fates(found: Converted) -> dict[str, str]:
    return {one.field: one.fate for one in found.fields}


def test_there_are_more_than_thirty_jobs_to_convert() -> None:
    """MIG-1."""
    assert len(CONVERTIBLE) > 50


@pytest.mark.parametrize("name", CONVERTIBLE)
def test_what_a_job_becomes_is_admitted(name: str) -> None:
    """MIG-1: both objects, alone and together, by the rules that admission has."""
    runtime, train_job, _ = converted(JOBS[name])
    left, right = load.runtime(runtime), load.train_job(train_job)
    assert (left.errors, right.errors) == ((), ())
    assert isinstance(left.value, Runtime)
    assert isinstance(right.value, TrainJob)
    assert compatibility.errors(right.value, left.value) == ()


@pytest.mark.parametrize("name", CONVERTIBLE)
def test_both_have_the_same_pods(name: str) -> None:
    """MIG-1: by our own rendering; but for what is known to differ in every job."""
    _, _, found = converted(JOBS[name])
    assert [one for one in pod_differences(JOBS[name], found.objects) if not one.known] == []


@pytest.mark.parametrize("name", [name for name in JOBS if name not in CONVERTIBLE])
def test_a_job_without_a_worker_is_refused_and_told_why(name: str) -> None:
    (error,) = to_trainjob(JOBS[name]).errors
    assert error.field == "spec.mpiReplicaSpecs.Worker.replicas"
    assert "one worker at least" in str(error)
    assert "keep this job an MPIJob" in str(error)


def test_a_difference_in_the_pods_is_found() -> None:
    """The comparison of MIG-1 sees what a conversion loses."""
    job = base()
    runtime, train_job, _ = converted(job)
    _, node = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    pod = node["template"]["spec"]["template"]["spec"]
    del pod["containers"][0]["resources"]
    pod["hostNetwork"] = True
    node["template"]["spec"]["parallelism"] = 3
    train_job["spec"]["trainer"]["numNodes"] = 3
    told = {one.field for one in pod_differences(job, (runtime, train_job)) if not one.known}
    assert {"pods", "hostNetwork"} <= told
    assert any(field.startswith("containers.node.resources") for field in told)


def test_ranks_are_counted_alike_with_and_without_the_launcher() -> None:
    _, alone, _ = converted(base())
    assert alone["spec"]["trainer"]["numNodes"] == 2
    runtime, both, found = converted(base(runLauncherAsWorker=True))
    assert both["spec"]["trainer"]["numNodes"] == 3
    assert both["spec"]["trainer"]["numProcPerNode"] == 2
    assert runtime["spec"]["mlPolicy"]["mpi"]["runLauncherAsNode"] is True
    assert fates(found)["spec.mpiReplicaSpecs.Worker.replicas"] == "changed"


def test_policies_are_where_a_trainjob_has_them() -> None:
    policy = {
        "cleanPodPolicy": "All",
        "ttlSecondsAfterFinished": 60,
        "backoffLimit": 3,
        "activeDeadlineSeconds": 0,
        "suspend": True,
        "schedulingPolicy": {"queue": "team-a", "scheduleTimeoutSeconds": 900000},
    }
    runtime, job, _ = converted(base(runPolicy=policy))
    notes = job["metadata"]["annotations"]
    assert notes[f"{DOMAIN}/clean-pod-policy"] == "All"
    assert notes[f"{DOMAIN}/ttl-seconds-after-finished"] == "60"
    assert notes[f"{DOMAIN}/schedule-timeout-seconds"] == "604800"
    assert job["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "team-a"}
    assert job["spec"]["activeDeadlineSeconds"] == 1
    assert job["spec"]["suspend"] is True
    assert runtime["spec"]["template"]["spec"]["failurePolicy"] == {"maxRestarts": 3}


def test_a_launcher_that_waits_is_made_after_the_workers() -> None:
    runtime, _, found = converted(base(launcherCreationPolicy="WaitForWorkersReady"))
    first, last = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    assert (first["name"], last["name"]) == ("node", "launcher")
    assert last["dependsOn"] == [{"name": "node", "status": "Ready"}]
    assert fates(found)["spec.launcherCreationPolicy"] == "carried"


def test_ranks_of_the_launcher_stay_first_when_it_waits() -> None:
    wanted = base(launcherCreationPolicy="WaitForWorkersReady", runLauncherAsWorker=True)
    runtime, _, found = converted(wanted)
    first, _ = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    assert first["name"] == "launcher"
    assert fates(found)["spec.launcherCreationPolicy"] == "changed"


def test_what_names_a_container_or_the_jobs_volumes_goes_with_the_name() -> None:
    job = base()
    launcher, _ = templates(job)
    reference = {"resourceFieldRef": {"containerName": "mpi", "resource": "limits.cpu"}}
    launcher["spec"]["containers"][0]["env"] = [{"name": "CPUS", "valueFrom": reference}]
    launcher["spec"]["containers"].append(
        {"name": "node", "image": "a", "volumeMounts": [{"name": "ssh-auth", "mountPath": "/k"}]}
    )
    file = {"path": "cpus", **copy_of(reference)}
    launcher["spec"]["volumes"] = [{"name": "info", "downwardAPI": {"items": [file]}}]
    runtime, _, found = converted(job)
    pod = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    main, sidecar = pod["spec"]["containers"]
    assert (main["name"], sidecar["name"]) == ("node", "node-sidecar")
    assert main["env"][0]["valueFrom"]["resourceFieldRef"]["containerName"] == "node"
    items = pod["spec"]["volumes"][0]["downwardAPI"]["items"]
    assert items[0]["resourceFieldRef"]["containerName"] == "node"
    assert sidecar["volumeMounts"][0]["name"] == "mpi-ssh-auth"
    assert "changed" in {fate for field, fate in fates(found).items() if "containers[1]" in field}


def copy_of(value: dict[str, Any]) -> dict[str, Any]:
    return {key: dict(item) for key, item in value.items()}


def test_hosts_and_files_that_a_command_names_are_told() -> None:
    job = base()
    launcher, _ = templates(job)
    launcher["spec"]["containers"][0]["args"] = [
        "-H",
        "train-worker-0",
        "/etc/mpi/discover_hosts.sh",
    ]
    remedies = " ".join(one.remedy for one in to_trainjob(job).fields)
    assert "train-node-0-0" in remedies
    assert "nodes do not change while it runs" in remedies


@pytest.mark.parametrize("role", [0, 1])
@pytest.mark.parametrize("kind", ["initContainers", "containers"])
def test_a_pod_that_any_container_names_is_told(role: int, kind: str) -> None:
    """One that waits for a host that never comes would wait for ever."""
    job = base()
    spec = templates(job)[role]["spec"]
    waits = {"name": "w", "image": "a", "command": ["sh", "-c", "nslookup train-worker-0.train"]}
    spec[kind] = [*spec.get(kind, []), waits]
    told = [one.field for one in to_trainjob(job).fields if "train-node-0-0" in one.remedy]
    name = ("Launcher", "Worker")[role]
    place = f"{kind}[{len(spec[kind]) - 1}].command"
    assert told == [f"spec.mpiReplicaSpecs.{name}.template.spec.{place}"]


LABELS = {"labelSelector": {"matchLabels": {"training.kubeflow.org/job-name": "train"}}}
RANDOM = {"labelSelector": {"matchLabels": {"app": "train"}}}


@pytest.mark.parametrize(("term", "told"), [(LABELS, True), (RANDOM, False)])
def test_selectors_of_labels_that_a_trainjob_lacks_are_told(
    term: dict[str, Any], told: bool
) -> None:
    """Workers that were kept apart would be placed together, and nothing would say so."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    where = {"topologyKey": "kubernetes.io/hostname"}
    job = base()
    launcher, worker = templates(job)
    worker["spec"]["affinity"] = {"podAntiAffinity": {required: [{**term, **where}]}}
    spread = {**term, **where, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    launcher["spec"]["topologySpreadConstraints"] = [{**spread}]
    fields = [one.field for one in to_trainjob(job).fields if "jobset-name" in one.remedy]
    wanted = [
        "spec.mpiReplicaSpecs.Launcher.template.spec.topologySpreadConstraints",
        "spec.mpiReplicaSpecs.Worker.template.spec.affinity",
    ]
    assert fields == (wanted if told else [])


def test_multikueue_is_carried_and_said_so() -> None:
    policy = {"managedBy": "kueue.x-k8s.io/multikueue", "suspend": True}
    _, job, found = converted(base(runPolicy=policy))
    assert job["spec"]["managedBy"] == "kueue.x-k8s.io/multikueue"
    assert fates(found)["spec.runPolicy.managedBy"] == "carried"


def test_annotations_of_the_old_object_stay_with_it() -> None:
    job = base()
    job["metadata"] |= {
        "uid": "1-2",
        "resourceVersion": "7",
        "ownerReferences": [{"kind": "CronJob", "name": "nightly"}],
        "annotations": {f"{DOMAIN}/record": "{}", f"{DOMAIN}/agent": "off", "team": "a"},
    }
    job["status"] = {"startTime": "2026-01-01T00:00:00Z"}
    _, made, found = converted(job)
    assert made["metadata"] == {
        "name": "train",
        "annotations": {f"{DOMAIN}/agent": "off", "team": "a"},
    }
    told = fates(found)
    lost = {field for field, fate in told.items() if fate == "lost"}
    record = f"metadata.annotations[{DOMAIN}/record]"
    owner = "metadata.ownerReferences"
    assert {"status", "metadata.uid", "metadata.resourceVersion", owner, record} == lost


def test_a_name_that_is_too_long_for_a_trainjobs_pods_is_told_before() -> None:
    job = base()
    job["metadata"]["name"] = "t" * 50
    (error,) = to_trainjob(job).errors
    assert error.field == "metadata.name"
    assert "use at most" in error.remedy


def test_an_invalid_job_is_refused_at_its_field() -> None:
    job = base(slotsPerWorker=0)
    found = to_trainjob(job)
    assert [error.field for error in found.errors] == ["spec.slotsPerWorker"]
    assert found.objects == ()


def test_a_job_with_a_generated_name_has_a_runtime_with_a_fixed_one() -> None:
    job = base()
    job["metadata"] = {"generateName": "train-"}
    runtime, made, _ = converted(job)
    assert runtime["metadata"]["name"] == made["spec"]["runtimeRef"]["name"] == "train"
    assert made["metadata"] == {"generateName": "train-"}
