"""Whether an MPIJob makes sense: every rule of the public operator, and what it misses.

`errors` takes a job with its defaults applied and finds everything at once; it never raises.
What would run upstream is accepted here; what could only hang or loop there is refused. Here are
the rules for metadata (V1, area 10) and policies (V9–V18, areas 2, 3, 5, 6): every child of the job
must get a legal name too. `replicas` has those of the pods; `mpijob_warnings` names what is legal
and probably not meant.
"""

from __future__ import annotations

from mpi_trainer.api import names
from mpi_trainer.api.defaults import AT_STARTUP, CLEAN_NONE, WAIT_FOR_WORKERS_READY
from mpi_trainer.api.errors import INVALID, TOO_LONG, FieldError
from mpi_trainer.api.kinds.managers import MPIJOB_MANAGERS
from mpi_trainer.api.kinds.mpijob import IMPLEMENTATIONS, MPIJob, SchedulingPolicy
from mpi_trainer.api.validation import network, own_annotations, replicas, rules

CLEAN_POD_POLICIES = (CLEAN_NONE, "Running", "All")
CREATION_POLICIES = (AT_STARTUP, WAIT_FOR_WORKERS_READY)

_POLICY = ("spec", "runPolicy")
_SCHEDULING = (*_POLICY, "schedulingPolicy")


def errors(job: MPIJob) -> tuple[FieldError, ...]:
    return (
        *_metadata(job),
        *own_annotations.errors(job.metadata.annotations),
        *network.errors(job),
        *_spec(job),
        *replicas.errors(job),
    )


def _metadata(job: MPIJob) -> rules.Errors:
    meta = job.metadata
    if meta.name:
        yield from _name(job, "name", meta.name, meta.name)
    elif meta.generate_name:
        shown = meta.generate_name
        yield from _name(job, "generateName", shown, shown + rules.GENERATED)
    else:
        path = ("metadata", "name")
        yield rules.required(path, "a job must have a name", "add for example `name: train`")
    if meta.namespace:
        fault = names.dns1123_label(meta.namespace)
        yield from rules.name_errors(("metadata", "namespace"), meta.namespace, fault)
    yield from rules.label_map(("metadata", "labels"), meta.labels)
    yield from rules.annotation_map(("metadata", "annotations"), meta.annotations)


def _longest_suffix(workers: int) -> str:
    """What the longest child name adds to the job's: a worker's, or the launcher's."""
    return f"-worker-{max(workers, 1) - 1}"


def _name(job: MPIJob, field: str, shown: str, name: str) -> rules.Errors:
    path = ("metadata", field)
    suffix = _longest_suffix(job.workers)
    room = names.LABEL_LENGTH - len(suffix)
    if len(name) > room:
        size = len(name) + len(suffix)
        rule = f"its pod `…{suffix}` would need {size} characters, and {names.LABEL_LENGTH} are"
        fits = room - (len(name) - len(shown))
        remedy = f"use at most {fits} characters"
        yield FieldError(path, TOO_LONG, shown, f"{rule} allowed", remedy)
    fault = names.dns1035_label(name[: names.LABEL_LENGTH])
    if fault is not None and len(name) <= names.LABEL_LENGTH:
        yield FieldError(path, INVALID, shown, fault.rule, fault.remedy)


def _spec(job: MPIJob) -> rules.Errors:
    spec = job.spec
    slots = ("spec", "slotsPerWorker")
    if spec.slots_per_worker is None:
        yield rules.required(slots, "must be set", "set it to the number of ranks per worker")
    remedy = "set it to the number of ranks per worker, usually its GPUs"
    yield from rules.at_least(slots, spec.slots_per_worker, 1, remedy)
    implementation = spec.mpi_implementation
    yield from rules.one_of(("spec", "mpiImplementation"), implementation, IMPLEMENTATIONS)
    creation = spec.launcher_creation_policy
    yield from rules.one_of(("spec", "launcherCreationPolicy"), creation, CREATION_POLICIES)
    path = ("spec", "sshAuthMountPath")
    folder = spec.ssh_auth_mount_path
    if not folder:
        yield rules.required(path, "must be set", "set it to the .ssh folder of the image's user")
    elif ":" in folder:
        yield FieldError(path, INVALID, folder, "must not contain `:`", "choose another folder")
    yield from _run_policy(job)


def _run_policy(job: MPIJob) -> rules.Errors:
    policy = job.spec.run_policy
    clean = (*_POLICY, "cleanPodPolicy")
    yield from rules.one_of(clean, policy.clean_pod_policy, CLEAN_POD_POLICIES)
    for field, value in (
        ("ttlSecondsAfterFinished", policy.ttl_seconds_after_finished),
        ("activeDeadlineSeconds", policy.active_deadline_seconds),
        ("backoffLimit", policy.backoff_limit),
    ):
        remedy = f"remove {field}, or set it to 0 or more"
        yield from rules.at_least((*_POLICY, field), value, 0, remedy)
    if policy.managed_by is not None:
        yield from rules.one_of((*_POLICY, "managedBy"), policy.managed_by, MPIJOB_MANAGERS)
    if policy.scheduling_policy is not None:
        yield from _scheduling(job, policy.scheduling_policy)


def _scheduling(job: MPIJob, policy: SchedulingPolicy) -> rules.Errors:
    path = (*_SCHEDULING, "minAvailable")
    remedy = "remove it to require all pods of the job"
    yield from rules.at_least(path, policy.min_available, 0, remedy)
    pods = max(job.workers, 0) + 1
    if policy.min_available is not None and policy.min_available > pods:
        rule = f"must be at most {pods}, the pods of the job ({pods - 1} workers and the launcher)"
        yield FieldError(path, INVALID, policy.min_available, rule, remedy)
    timeout = policy.schedule_timeout_seconds
    path = (*_SCHEDULING, "scheduleTimeoutSeconds")
    yield from rules.at_least(path, timeout, 0, "set the seconds to wait, or remove it")
    for field, name in (("queue", policy.queue), ("priorityClass", policy.priority_class)):
        if name:
            path = (*_SCHEDULING, field)
            yield from rules.name_errors(path, name, names.dns1123_subdomain(name))
    for resource, amount in (policy.min_resources or {}).items():
        where = (*_SCHEDULING, "minResources", resource)
        yield from rules.name_errors(where, resource, names.qualified(resource))
        yield from rules.quantity(where, amount)
