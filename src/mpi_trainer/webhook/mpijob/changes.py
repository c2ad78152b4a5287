"""Which parts of a job may still change, and when. Pure.

Before its start, and while it is suspended, a job may change in everything but its manager: a
queue sets node selectors, labels and tolerations as it resumes a job and takes them back as it
suspends it. While its pods exist only policies may change, and the number of workers: anything
else would say what no pod does.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from mpi_trainer.api.errors import FORBIDDEN, FieldError, Path
from mpi_trainer.api.kinds.mpijob import WORKER, MPIJob, ReplicaSpec

_ROLES: Path = ("spec", "mpiReplicaSpecs")
_LATER = "suspend the job first (runPolicy.suspend: true), or make a new one"


def errors(old: MPIJob, new: MPIJob) -> tuple[FieldError, ...]:
    """Both with their defaults applied."""
    return (*_manager(old, new), *(_frozen(old, new) if _has_pods(old, new) else ()))


def _has_pods(old: MPIJob, new: MPIJob) -> bool:
    suspended = old.spec.run_policy.suspend or new.spec.run_policy.suspend
    return old.status.start_time is not None and not suspended


def _manager(old: MPIJob, new: MPIJob) -> Iterator[FieldError]:
    before, after = old.spec.run_policy.managed_by, new.spec.run_policy.managed_by
    if before != after:
        rule = f"a job keeps its manager, {before or 'the MPI operator'}"
        path = ("spec", "runPolicy", "managedBy")
        yield FieldError(path, FORBIDDEN, after, rule, "make a new job")


def _frozen(old: MPIJob, new: MPIJob) -> Iterator[FieldError]:
    for field, before, after in (
        ("slotsPerWorker", old.spec.slots_per_worker, new.spec.slots_per_worker),
        ("mpiImplementation", old.spec.mpi_implementation, new.spec.mpi_implementation),
        ("sshAuthMountPath", old.spec.ssh_auth_mount_path, new.spec.ssh_auth_mount_path),
        ("runLauncherAsWorker", old.spec.run_launcher_as_worker, new.spec.run_launcher_as_worker),
    ):
        if before != after:
            rule = f"is {before!r} in the pods that run"
            yield FieldError(("spec", field), FORBIDDEN, after, rule, _LATER)
    before_roles, after_roles = (job.spec.mpi_replica_specs or {} for job in (old, new))
    for name in sorted({*before_roles, *after_roles}):
        was, now = (_but_for_scale(name, roles.get(name)) for roles in (before_roles, after_roles))
        if was != now:
            rule = "the pods of a job that has started keep their template"
            yield FieldError((*_ROLES, name), FORBIDDEN, rule=rule, remedy=_LATER)


def _but_for_scale(name: str, spec: ReplicaSpec | None) -> ReplicaSpec | None:
    return replace(spec, replicas=None) if spec is not None and name == WORKER else spec
