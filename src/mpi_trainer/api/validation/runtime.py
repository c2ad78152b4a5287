"""A runtime by itself: what upstream refuses, and what contradicts itself.

A runtime may be meant for another controller, so what only we cannot serve is a warning here, and
an error of the job that names it (`compatibility`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from mpi_trainer.api import names
from mpi_trainer.api.effective.combine import DATASET, LAUNCHER, MODEL, NODE, TRAINER
from mpi_trainer.api.errors import DUPLICATE, FORBIDDEN, INVALID, SUSPICIOUS, FieldError, Path
from mpi_trainer.api.kinds.annotations import MPI_IMPLEMENTATION
from mpi_trainer.api.kinds.jobset import JobSetView, ReplicatedJobView
from mpi_trainer.api.kinds.labels import LABEL_SUPPORT, reserved_errors
from mpi_trainer.api.kinds.mpijob import IMPLEMENTATIONS, OPEN_MPI
from mpi_trainer.api.kinds.runtime import CLUSTER, MPI, MPIPolicy, Runtime
from mpi_trainer.api.validation import rules
from mpi_trainer.api.yaml.decode import decode

POLICY: Path = ("spec", "mlPolicy")
JOBSET: Path = ("spec", "template", "spec")
JOBS: Path = (*JOBSET, "replicatedJobs")

_CONTAINERS = {TRAINER: NODE, DATASET: DATASET, MODEL: MODEL}


def errors(runtime: Runtime) -> rules.Errors:
    yield from _metadata(runtime)
    yield from structure(runtime)
    policy = runtime.spec.ml_policy
    if policy is not None:
        remedy = "set it to the number of nodes; a job may ask for another"
        yield from rules.at_least((*POLICY, "numNodes"), policy.num_nodes, 1, remedy)
        if len(policy.names) > 1:
            rule = f"only one framework can be set, not {' and '.join(policy.names)}"
            yield FieldError(POLICY, FORBIDDEN, rule=rule, remedy="keep one of them")
        if policy.mpi is not None:
            yield from _mpi((*POLICY, MPI), policy.mpi)
    taken: set[str] = set()
    for n, job in enumerate(runtime.jobset.replicated_jobs):
        yield from _job((*JOBS, n), job, taken)
        taken.add(job.name)


def structure(runtime: Runtime) -> rules.Errors:
    """What has the wrong type in the template, as far as we read it."""
    for error in decode(JobSetView, runtime.spec.template.spec).errors:
        yield replace(error, path=(*JOBSET, *error.path))


def warnings(runtime: Runtime) -> Iterator[FieldError]:
    if runtime.metadata.labels.get(LABEL_SUPPORT) == "deprecated":
        rule, remedy = (
            "the runtime is deprecated and will be removed",
            "choose another for new jobs",
        )
        yield FieldError(
            ("metadata", "labels", LABEL_SUPPORT), SUSPICIOUS, rule=rule, remedy=remedy
        )
    for n, job in enumerate(runtime.jobset.replicated_jobs):
        yield from _ignored((*JOBS, n, "template"), job)
    if runtime.policy == MPI:
        yield from mpi_roles(runtime, JOBS)


def mpi_roles(runtime: Runtime, path: Path) -> Iterator[FieldError]:
    """Why no MPI job can start from it: a launcher and workers, each with a container `node`."""
    jobs = {job.name: job for job in runtime.jobset.replicated_jobs}
    for role in (LAUNCHER, NODE):
        if role not in jobs:
            rule = f"an MPI runtime needs a replicated job `{role}`, and has {_quoted(jobs)}"
            yield FieldError(path, INVALID, rule=rule, remedy=f"add a job named `{role}`")
        elif not _has(jobs[role], NODE):
            rule = f"the job `{role}` of an MPI runtime needs a container `{NODE}`"
            yield FieldError(path, INVALID, rule=rule, remedy=f"name its container `{NODE}`")
    if LAUNCHER in jobs:
        yield from _one_launcher(runtime, jobs[LAUNCHER], path)


def _one_launcher(runtime: Runtime, job: ReplicatedJobView, path: Path) -> Iterator[FieldError]:
    labelled = job.ancestor == TRAINER and runtime.spec.ml_policy is not None
    nodes = runtime.spec.ml_policy.num_nodes if runtime.spec.ml_policy else None
    parallel = nodes if labelled else job.template.spec.parallelism
    count = max(parallel or 1, 1) * job.replicas
    if count != 1:
        field = "mlPolicy.numNodes" if labelled else f"the parallelism of `{LAUNCHER}`"
        rule = f"it would start {count} launchers, by {field}"
        remedy = f"set that to 1; workers are counted by the parallelism of `{NODE}`"
        yield FieldError(path, INVALID, count, rule, f"{remedy}, or by numNodes in the job")


def _metadata(runtime: Runtime) -> rules.Errors:
    meta = runtime.metadata
    if meta.name:
        yield from rules.name_errors(
            ("metadata", "name"), meta.name, names.dns1123_subdomain(meta.name)
        )
    elif not meta.generate_name:
        rule = "a runtime must have a name"
        yield rules.required(("metadata", "name"), rule, "add the name that jobs refer to")
    if runtime.kind == CLUSTER and meta.namespace:
        rule = f"a {CLUSTER} belongs to no namespace"
        remedy = "remove it, or make it a TrainingRuntime"
        yield FieldError(("metadata", "namespace"), FORBIDDEN, meta.namespace, rule, remedy)
    yield from rules.label_map(("metadata", "labels"), meta.labels)
    yield from rules.annotation_map(("metadata", "annotations"), meta.annotations)
    implementation = meta.annotations.get(MPI_IMPLEMENTATION)
    if implementation is not None:
        where = ("metadata", "annotations", MPI_IMPLEMENTATION)
        yield from rules.one_of(where, implementation, IMPLEMENTATIONS)


def _ignored(path: Path, job: ReplicatedJobView) -> Iterator[FieldError]:
    """What the template writes onto Jobs and pods that is left out there."""
    pod = (*path, "spec", "template")
    for where, meta in (
        (path, job.template.metadata),
        (pod, job.template.spec.template.view.metadata),
    ):
        for field, given in (("labels", meta.labels), ("annotations", meta.annotations)):
            for error in reserved_errors((*where, "metadata", field), given):
                yield replace(error, problem=SUSPICIOUS)


def _mpi(path: Path, policy: MPIPolicy) -> rules.Errors:
    remedy = "set it to the ranks per node; 1 means as many as a node has GPUs"
    yield from rules.at_least((*path, "numProcPerNode"), policy.num_proc_per_node, 1, remedy)
    given = policy.mpi_implementation
    if given and given != OPEN_MPI:
        rule = f"the field takes {OPEN_MPI} only, and Kueue refuses every job where it says more"
        remedy = f"remove it, and annotate the runtime with {MPI_IMPLEMENTATION}: {given}"
        yield FieldError((*path, "mpiImplementation"), INVALID, given, rule, remedy)
    folder = policy.ssh_auth_mount_path or ""
    if len(folder) > 4096 or ":" in folder:
        rule = "must be a path of at most 4096 characters without `:`"
        remedy = "choose another folder"
        yield FieldError((*path, "sshAuthMountPath"), INVALID, folder, rule, remedy)


def _job(path: Path, job: ReplicatedJobView, taken: set[str]) -> rules.Errors:
    if not job.name:
        rule = "a replicated job must have a name"
        yield rules.required((*path, "name"), rule, "add for example `name: node`")
    elif job.name in taken:
        rule = "another replicated job has this name"
        yield FieldError((*path, "name"), DUPLICATE, job.name, rule, "rename one of them")
    else:
        yield from rules.name_errors((*path, "name"), job.name, names.dns1035_label(job.name))
    if job.ancestor not in _CONTAINERS:
        return
    if job.replicas != 1:
        rule = f"a job labelled `{job.ancestor}` has one replica"
        remedy = "set replicas to 1; nodes are counted by mlPolicy.numNodes"
        yield FieldError((*path, "replicas"), INVALID, job.replicas, rule, remedy)
    wanted = _CONTAINERS[job.ancestor]
    if not _has(job, wanted):
        rule = f"a job labelled `{job.ancestor}` needs a container `{wanted}`"
        where = (*path, "template", "spec", "template", "spec", "containers")
        yield FieldError(where, INVALID, rule=rule, remedy=f"name its container `{wanted}`")


def _has(job: ReplicatedJobView, name: str) -> bool:
    spec = job.template.spec.template.view.spec
    return any(container.name == name for container in spec.containers)


def _quoted(listed: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in listed) or "none"
