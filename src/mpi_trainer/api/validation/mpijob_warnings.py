"""What is legal in an MPIJob and probably not meant. Nothing here stops a job."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from mpi_trainer.api import names
from mpi_trainer.api.errors import SUSPICIOUS, FieldError, Path
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, MPIJob, ReplicaSpec
from mpi_trainer.api.kinds.pods import Container, TemplateView
from mpi_trainer.api.validation import gang_scheduling, network, resources, security, volumes
from mpi_trainer.api.validation.replicas import SPECS
from mpi_trainer.api.yaml.decode import decode

Warnings = Iterator[FieldError]


def warnings(job: MPIJob) -> tuple[FieldError, ...]:
    return tuple(_warnings(job))


def _warnings(job: MPIJob) -> Warnings:
    yield from gang_scheduling.mpijob_warnings(job)
    yield from network.warnings(job)
    folder = job.spec.ssh_auth_mount_path
    if folder and not volumes.is_absolute(folder):
        yield _relative(("spec", "sshAuthMountPath"), folder)
    if not job.workers and not job.spec.run_launcher_as_worker:
        rule = "no pod is left to run ranks: no Worker, and the launcher is not one"
        remedy = "add a Worker, or set runLauncherAsWorker: true"
        yield FieldError(SPECS, SUSPICIOUS, rule=rule, remedy=remedy)
    yield from _ranks(job)
    for name in (LAUNCHER, WORKER):
        spec = (job.spec.mpi_replica_specs or {}).get(name)
        if spec is not None:
            yield from _replica(job, name, spec)


def _ranks(job: MPIJob) -> Warnings:
    """More ranks than slots, where the launcher's own words say how many."""
    container = next(iter(job.launcher.template.view.spec.containers), None)
    words = (*(container.command or ()), *(container.args or ())) if container else ()
    slots = (job.workers + bool(job.spec.run_launcher_as_worker)) * job.slots
    yield from too_many_ranks((*SPECS, LAUNCHER), words, slots)


def too_many_ranks(
    path: Path, words: Sequence[str], slots: int, more: str = "workers or slotsPerWorker"
) -> Warnings:
    """Of a launcher whose command is mpirun itself, and says how many ranks it starts. `more`: what
    would give it more slots."""
    if not words or words[0].rpartition("/")[2] not in ("mpirun", "mpiexec"):
        return
    count = next((n for o, n in itertools.pairwise(words[:9]) if o in ("-n", "-np", "--np")), "")
    allowed = any("oversubscribe" in word for word in words)
    ranks = int(count) if count.isascii() and count.isdecimal() and len(count) < 8 else 0
    if slots and ranks > slots and not allowed:
        rule = f"mpirun starts {ranks} ranks, and the job has {slots} slots"
        remedy = f"add {more}, or allow it with --oversubscribe"
        yield FieldError(path, SUSPICIOUS, rule=rule, remedy=remedy)


def _replica(job: MPIJob, name: str, spec: ReplicaSpec) -> Warnings:
    path: Path = (*SPECS, name, "template", "spec")
    view = decode(TemplateView, spec.template.content).value
    given = view.spec.restart_policy
    if given and given != spec.restart_policy:
        rule = f"is replaced by {spec.restart_policy}, the restartPolicy of {name}"
        remedy = f"set it at {name}.restartPolicy"
        yield FieldError((*path, "restartPolicy"), SUSPICIOUS, given, rule, remedy)
    yield from security.warnings(path, view.spec)
    for n, container in enumerate(view.spec.containers):
        yield from _container((*path, "containers", n), container)
    gpus = sum(resources.gpus(container) for container in view.spec.containers)
    if name == LAUNCHER and gpus and not job.spec.run_launcher_as_worker:
        rule = f"the launcher holds {gpus} GPUs but runs no rank, and does not see them"
        remedy = "remove them, or set runLauncherAsWorker: true"
        yield FieldError((*path, "containers"), SUSPICIOUS, rule=rule, remedy=remedy)
    if name == WORKER and gpus > job.slots:
        rule = f"a worker has {gpus} GPUs, so some are left without a rank"
        remedy = f"set slotsPerWorker: {gpus} for one rank per GPU"
        yield FieldError(("spec", "slotsPerWorker"), SUSPICIOUS, job.slots, rule, remedy)


def _container(path: Path, container: Container) -> Warnings:
    seen: set[str] = set()
    for n, variable in enumerate(container.env):
        where = (*path, "env", n, "name")
        if variable.name in seen:
            rule, remedy = "is set twice, and the last one wins", "keep one of them"
            yield FieldError(where, SUSPICIOUS, variable.name, rule, remedy)
        elif variable.name and not names.shell_env_name(variable.name):
            rule, remedy = "no shell can export such a name", "use letters, digits and `_`"
            yield FieldError(where, SUSPICIOUS, variable.name, rule, remedy)
        seen.add(variable.name)
    for n, mount in enumerate(container.volume_mounts):
        if mount.mount_path and not volumes.is_absolute(mount.mount_path):
            yield _relative((*path, "volumeMounts", n, "mountPath"), mount.mount_path)
    for field, amounts in (
        ("requests", container.resources.requests),
        ("limits", container.resources.limits),
    ):
        memory = amounts.get("memory")
        if memory is not None and resources.is_tiny(memory):
            rule, remedy = "is less than one MiB of memory", "write a unit such as Mi or Gi"
            where = (*path, "resources", field, "memory")
            yield FieldError(where, SUSPICIOUS, memory, rule, remedy)


def _relative(path: Path, folder: str) -> FieldError:
    return FieldError(path, SUSPICIOUS, folder, f"is taken as /{folder}", f"write `/{folder}`")
