"""MPIJob v2beta1 → TrainingRuntime and TrainJob: the pods of the one, made by the other (MIG-1).

The runtime has what jobs of a team share (templates, MPI, policies), the TrainJob what is one
job's own: command, counts, time. Guarantee: what comes out passes our admission, or `errors` says
why not. Danger: MPIJob and TrainJob of one name have a Service of one name; delete the one first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mpi_trainer.api.defaults import WAIT_FOR_WORKERS_READY
from mpi_trainer.api.effective.combine import LAUNCHER, NODE, TRAINER
from mpi_trainer.api.errors import INVALID, FieldError
from mpi_trainer.api.kinds import trainjob as trainjobs
from mpi_trainer.api.kinds.annotations import (
    CLEAN,
    LONGEST_SECONDS,
    MPI_IMPLEMENTATION,
    SCHEDULE_TIMEOUT,
    TTL,
)
from mpi_trainer.api.kinds.labels import LABEL_ANCESTOR, LABEL_QUEUE
from mpi_trainer.api.kinds.managers import MULTIKUEUE
from mpi_trainer.api.kinds.mpijob import OPEN_MPI, WORKER, MPIJob
from mpi_trainer.api.kinds.runtime import NAMESPACED, Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation import compatibility
from mpi_trainer.api.yaml import load
from mpi_trainer.migrate import trainjob_fields
from mpi_trainer.migrate.containers import runtime_pod
from mpi_trainer.migrate.report import Converted, Object, complete

TRIES = 6
"""of an MPIJob that sets no backoffLimit, as Kubernetes has it for a Job"""
_MOST_WORDS = 128


def to_trainjob(data: Mapping[str, Any]) -> Converted:
    """An MPIJob v2beta1 as plain data; never raises for what a user can write."""
    found = load.job(data)
    if found.errors or not isinstance(found.value, MPIJob):
        return _unchanged(data, found.errors)
    job = found.value
    if job.workers < 1:
        return _unchanged(data, (_no_worker(job),))
    runtime, train_job = _runtime(job), _train_job(job)
    wrong = refusals(runtime, train_job)
    if wrong:
        return _unchanged(data, wrong)
    fields = complete(data, trainjob_fields.reports(job, data))
    made = _unchanged(data, ())
    return msgspec.structs.replace(made, objects=(runtime, train_job), fields=fields, through=data)


def refusals(runtime: Object, train_job: Object) -> tuple[FieldError, ...]:
    """What our admission would say of both."""
    left, right = load.runtime(runtime), load.train_job(train_job)
    errors = (*left.errors, *right.errors)
    if errors or not isinstance(left.value, Runtime) or not isinstance(right.value, TrainJob):
        return errors
    return compatibility.errors(right.value, left.value)


def runtime_name(job: MPIJob) -> str:
    return job.name or (job.metadata.generate_name or "").rstrip("-")


def _unchanged(data: Mapping[str, Any], errors: tuple[FieldError, ...]) -> Converted:
    meta = data.get("metadata")
    meta = meta if isinstance(meta, Mapping) else {}
    name = meta.get("name") or meta.get("generateName")
    return Converted(
        str(data.get("kind")), str(data.get("apiVersion") or ""), str(name or ""),
        str(meta.get("namespace") or ""), errors=errors,
    )  # fmt: skip


def _no_worker(job: MPIJob) -> FieldError:
    rule = "an MPI TrainJob has one worker at least beside its launcher"
    remedy = f"set {WORKER}.replicas to 1 or more, or keep this job an MPIJob"
    return FieldError(("spec", "mpiReplicaSpecs", WORKER, "replicas"), INVALID, 0, rule, remedy)


def _runtime(job: MPIJob) -> Object:
    implementation = job.spec.mpi_implementation or OPEN_MPI
    other = implementation != OPEN_MPI
    notes = {"annotations": {MPI_IMPLEMENTATION: implementation}} if other else {}
    where = {"namespace": job.namespace} if job.namespace else {}
    mpi = {
        "numProcPerNode": job.slots,
        "mpiImplementation": OPEN_MPI,
        "sshAuthMountPath": job.spec.ssh_auth_mount_path,
        "runLauncherAsNode": bool(job.spec.run_launcher_as_worker),
    }
    tries = job.spec.run_policy.backoff_limit
    return {
        "apiVersion": trainjobs.API_VERSION,
        "kind": NAMESPACED,
        "metadata": {"name": runtime_name(job), **where, **notes},
        "spec": {
            "mlPolicy": {"numNodes": 1, "mpi": mpi},
            "template": {
                "spec": {
                    "network": {"publishNotReadyAddresses": True},
                    "successPolicy": {"operator": "All", "targetReplicatedJobs": [LAUNCHER]},
                    "failurePolicy": {"maxRestarts": TRIES if tries is None else tries},
                    "replicatedJobs": _replicated(job),
                }
            },
        },
    }


def _replicated(job: MPIJob) -> list[Object]:
    """The launcher first, so that its ranks are; last, where it waits and runs none."""
    as_worker = bool(job.spec.run_launcher_as_worker)
    main = runtime_pod(job.launcher.template, hides_gpus=not as_worker)
    for moved in _in_job(job):
        main["spec"]["containers"][0].pop(moved, None)
    launcher = _replicated_job(LAUNCHER, main, 1)
    launcher["template"]["metadata"] = {"labels": {LABEL_ANCESTOR: TRAINER}}
    node = _replicated_job(NODE, runtime_pod(job.worker.template, hides_gpus=False), job.workers)
    if job.spec.launcher_creation_policy != WAIT_FOR_WORKERS_READY or as_worker:
        return [launcher, node]
    return [node, {**launcher, "dependsOn": [{"name": NODE, "status": "Ready"}]}]


def _replicated_job(name: str, pod: Object, count: int) -> Object:
    many = {} if count == 1 else {"parallelism": count, "completions": count}
    return {
        "name": name,
        "replicas": 1,
        "template": {"spec": {"backoffLimit": 0, **many, "template": pod}},
    }


def _in_job(job: MPIJob) -> Object:
    """The launcher's command, as far as a TrainJob takes one so long."""
    main = job.launcher.template.content["spec"]["containers"][0]
    words = {field: main.get(field) for field in ("command", "args")}
    return {field: said for field, said in words.items() if said and len(said) <= _MOST_WORDS}


def _train_job(job: MPIJob) -> Object:
    spec, policy = job.spec, job.spec.run_policy
    nodes = job.workers + bool(spec.run_launcher_as_worker)
    name = job.name or job.metadata.generate_name
    named = {"name" if job.name else "generateName": name}
    where = {"namespace": job.namespace} if job.namespace else {}
    marks = {"labels": _labels(job), "annotations": _annotations(job)}
    wanted: Object = {
        "runtimeRef": {
            "apiGroup": trainjobs.GROUP,
            "kind": NAMESPACED,
            "name": runtime_name(job),
        },
        "trainer": {"numNodes": nodes, "numProcPerNode": job.slots, **_in_job(job)},
    }
    if policy.active_deadline_seconds is not None:
        wanted["activeDeadlineSeconds"] = max(policy.active_deadline_seconds, 1)
    if policy.suspend:
        wanted["suspend"] = True
    if policy.managed_by == MULTIKUEUE:
        wanted["managedBy"] = MULTIKUEUE
    return {
        "apiVersion": trainjobs.API_VERSION,
        "kind": trainjobs.KIND,
        "metadata": {**named, **where, **{key: value for key, value in marks.items() if value}},
        "spec": wanted,
    }


def _labels(job: MPIJob) -> Object:
    policy = job.spec.run_policy.scheduling_policy
    queue = {LABEL_QUEUE: policy.queue} if policy and policy.queue else {}
    return {**queue, **job.metadata.labels}


def _annotations(job: MPIJob) -> Object:
    policy = job.spec.run_policy
    notes = trainjob_fields.kept_annotations(job)
    if policy.ttl_seconds_after_finished is not None:
        notes[TTL] = str(policy.ttl_seconds_after_finished)
    if policy.clean_pod_policy == "All":
        notes[CLEAN] = "All"
    waiting = policy.scheduling_policy
    if waiting and waiting.schedule_timeout_seconds is not None:
        notes[SCHEDULE_TIMEOUT] = str(min(waiting.schedule_timeout_seconds, LONGEST_SECONDS))
    return notes
