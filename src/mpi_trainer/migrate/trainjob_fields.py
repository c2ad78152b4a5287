"""What becomes of each field of an MPIJob in a TrainJob and its runtime, in words.

Beside the conversion, so that both are read together: a field whose value goes nowhere must have a
line here, or `report.complete` reports it as unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mpi_trainer.api.defaults import WAIT_FOR_WORKERS_READY
from mpi_trainer.api.errors import Path
from mpi_trainer.api.kinds.annotations import (
    CLEAN,
    LONGEST_SECONDS,
    MPI_IMPLEMENTATION,
    ONE_JOB,
    POD_FAILURE_POLICY,
    SCHEDULE_TIMEOUT,
    TTL,
    ours,
)
from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.api.kinds.managers import MULTIKUEUE
from mpi_trainer.api.kinds.mpijob import LAUNCHER, OPEN_MPI, WORKER, MPIJob
from mpi_trainer.migrate import containers, mentions
from mpi_trainer.migrate.report import (
    CARRIED,
    CHANGED,
    LOST,
    TIED,
    TIES,
    Fate,
    FieldReport,
    Object,
)

_POLICY: Path = ("spec", "runPolicy")
_SCHEDULING: Path = (*_POLICY, "schedulingPolicy")
_RUNTIME_JOBS = "TrainingRuntime spec.template.spec.replicatedJobs"
_MPI = "TrainingRuntime spec.mlPolicy.mpi"
_OF_SERVER = "the API server writes it"
_CLEAN = {
    "None": ("workers that still run at the end are removed, and the launcher's pod stays",
             "read what workers leave behind before the job ends, or from a volume"),
    "Running": ("JobSet removes pods that still run at the end", ""),
}  # fmt: skip

Told = tuple[Fate, str, str, str]


def kept_annotations(job: MPIJob) -> Object:
    """Those that a copy may have, and a TrainJob knows."""
    gone = ONE_JOB | {POD_FAILURE_POLICY}
    return {key: value for key, value in job.metadata.annotations.items() if key not in gone}


def reports(job: MPIJob, data: Mapping[str, Any]) -> Iterator[FieldReport]:
    """A line for each field that `data` has; `job` is what was read from it."""
    yield FieldReport(("apiVersion",), CHANGED, "apiVersion", "trainer.kubeflow.org/v1alpha1")
    yield FieldReport(("kind",), CHANGED, "kind", "a TrainJob, and a TrainingRuntime of its own")
    yield from _metadata(job, data)
    if data.get("status"):
        note = "a new job begins with an empty status"
        yield FieldReport(("status",), LOST, note=note)
    given = data.get("spec") or {}
    for field, told in _SPEC.items():
        if given.get(field) is not None:
            yield FieldReport(("spec", field), *told)
    yield from _implementation(job, given)
    yield from _creation(job, given)
    policy = given.get("runPolicy") or {}
    for field, value in policy.items():
        if value is not None and field != "schedulingPolicy":
            yield FieldReport((*_POLICY, field), *_of_policy(job, field))
    for field, value in (policy.get("schedulingPolicy") or {}).items():
        if value is not None:
            yield FieldReport((*_SCHEDULING, field), *_of_scheduling(job, field))
    for role in (LAUNCHER, WORKER):
        yield from _replica(job, role, (given.get("mpiReplicaSpecs") or {}).get(role) or {})
    yield from mentions.reports(job)


_SPEC: Mapping[str, Told] = {
    "slotsPerWorker": (CARRIED, "TrainJob spec.trainer.numProcPerNode", "", ""),
    "runLauncherAsWorker": (CARRIED, f"{_MPI}.runLauncherAsNode", "", ""),
    "sshAuthMountPath": (CARRIED, f"{_MPI}.sshAuthMountPath", "", ""),
}


def _metadata(job: MPIJob, data: Mapping[str, Any]) -> Iterator[FieldReport]:
    given = data.get("metadata") or {}
    kept = kept_annotations(job)
    for key, value in given.items():
        path: Path = ("metadata", key)
        if key == "annotations" and isinstance(value, Mapping):
            for name in value:
                yield _annotation((*path, name), name, kept)
        elif key in ("name", "generateName"):
            note = "pods and their host names are called otherwise: see docs/migration.md"
            yield FieldReport(path, CARRIED, f"TrainJob metadata.{key}", note)
        elif key in ("namespace", "labels"):
            yield FieldReport(path, CARRIED, f"TrainJob metadata.{key}")
        elif key in TIES and value:
            yield FieldReport(path, LOST, "", *TIED)
        elif value not in (None, "", [], {}, 0):
            yield FieldReport(path, LOST, note=_OF_SERVER)


def _annotation(path: Path, name: str, kept: Mapping[str, Any]) -> FieldReport:
    if name in kept:
        return FieldReport(path, CARRIED, "TrainJob metadata.annotations")
    if name == POD_FAILURE_POLICY:
        remedy = "write it as a podFailurePolicy of the Jobs in the runtime"
        return FieldReport(path, LOST, note="a TrainJob has no such annotation", remedy=remedy)
    note = "it says something of the old job alone" if ours({name: ""}) else _OF_SERVER
    return FieldReport(path, LOST, note=note)


def _implementation(job: MPIJob, given: Mapping[str, Any]) -> Iterator[FieldReport]:
    if given.get("mpiImplementation") is None:
        return
    path: Path = ("spec", "mpiImplementation")
    if job.spec.mpi_implementation == OPEN_MPI:
        yield FieldReport(path, CARRIED, f"{_MPI}.mpiImplementation")
        return
    to = f"TrainingRuntime metadata.annotations[{MPI_IMPLEMENTATION}]"
    note = "read by this controller only; another one would start Open MPI"
    yield FieldReport(path, CARRIED, to, note)


def _creation(job: MPIJob, given: Mapping[str, Any]) -> Iterator[FieldReport]:
    if given.get("launcherCreationPolicy") is None:
        return
    path: Path = ("spec", "launcherCreationPolicy")
    if job.spec.launcher_creation_policy != WAIT_FOR_WORKERS_READY:
        yield FieldReport(path, CARRIED, note="all pods start at once there too")
    elif job.spec.run_launcher_as_worker:
        note = "all pods start at once, and the launcher waits for its workers itself"
        yield FieldReport(path, CHANGED, note=note)
    else:
        to = f"{_RUNTIME_JOBS}[launcher].dependsOn"
        yield FieldReport(path, CARRIED, to, "the launcher's Job is made when workers are ready")


def _of_policy(job: MPIJob, field: str) -> Told:
    policy = job.spec.run_policy
    if field == "cleanPodPolicy":
        note, remedy = _CLEAN.get(policy.clean_pod_policy or "", ("", ""))
        if not note:
            to = f"TrainJob metadata.annotations[{CLEAN}]"
            return CARRIED, to, "read by this controller only", ""
        return (CHANGED if remedy else CARRIED), "", note, remedy
    if field == "managedBy" and policy.managed_by == MULTIKUEUE:
        return CARRIED, "TrainJob spec.managedBy", "", ""
    if field == "managedBy":
        note = "the TrainJob controller's name, which is the default"
        return CHANGED, "TrainJob spec.managedBy", note, ""
    if field == "activeDeadlineSeconds" and policy.active_deadline_seconds == 0:
        return CHANGED, "TrainJob spec.activeDeadlineSeconds", "1, the least it takes", ""
    return _POLICIES[field]


_POLICIES: Mapping[str, Told] = {
    "activeDeadlineSeconds": (CARRIED, "TrainJob spec.activeDeadlineSeconds", "", ""),
    "suspend": (CARRIED, "TrainJob spec.suspend", "", ""),
    "ttlSecondsAfterFinished": (
        CARRIED,
        f"TrainJob metadata.annotations[{TTL}]",
        "read by this controller only; the public API has no such field",
        "",
    ),
    "backoffLimit": (
        CHANGED,
        "TrainingRuntime spec.template.spec.failurePolicy.maxRestarts",
        "JobSet starts all pods anew, also after a failure that will come again",
        "",
    ),
}


def _of_scheduling(job: MPIJob, field: str) -> Told:
    policy = job.spec.run_policy.scheduling_policy
    if field == "queue":
        to = f"TrainJob metadata.labels[{LABEL_QUEUE}]"
        return CHANGED, to, "a queue of Kueue, not of Volcano; a label given wins", ""
    if field == "scheduleTimeoutSeconds":
        long = policy is not None and (policy.schedule_timeout_seconds or 0) > LONGEST_SECONDS
        to = f"TrainJob metadata.annotations[{SCHEDULE_TIMEOUT}]"
        if long:
            return CHANGED, to, f"{LONGEST_SECONDS}, the most it takes", ""
        return CARRIED, to, "read by this controller only", ""
    if field == "priorityClass":
        remedy = "label the TrainJob with kueue.x-k8s.io/priority-class, a WorkloadPriorityClass"
        return LOST, "", "a TrainJob has no priority of its own", remedy
    remedy = "put the job into a Kueue queue, which starts all of its pods or none"
    return LOST, "", "gang scheduling is a queue's business there", remedy


def _replica(job: MPIJob, role: str, given: Mapping[str, Any]) -> Iterator[FieldReport]:
    path: Path = ("spec", "mpiReplicaSpecs", role)
    name = mentions.NAMES[role]
    if given.get("replicas") is not None:
        yield FieldReport((*path, "replicas"), *_replicas(job, role))
    if given.get("restartPolicy") is not None:
        same = given["restartPolicy"] == "Never"
        note = "" if same else "Never: pods are made anew, as this controller does for MPIJobs"
        fate = CARRIED if same else CHANGED
        yield FieldReport((*path, "restartPolicy"), fate, f"{_RUNTIME_JOBS}[{name}]", note)
    if given.get("template"):
        to = f"{_RUNTIME_JOBS}[{name}].template.spec.template"
        moved = "command and args are in the TrainJob" if role == LAUNCHER else ""
        yield FieldReport((*path, "template"), CARRIED, to, moved)
        template = job.launcher.template if role == LAUNCHER else job.worker.template
        yield from containers.reports(template, (*path, "template"))


def _replicas(job: MPIJob, role: str) -> Told:
    if role == LAUNCHER:
        return CARRIED, f"{_RUNTIME_JOBS}[launcher].replicas", "", ""
    as_worker = job.spec.run_launcher_as_worker
    note = "with the launcher, which runs ranks too" if as_worker else ""
    return (CHANGED if as_worker else CARRIED), "TrainJob spec.trainer.numNodes", note, ""
