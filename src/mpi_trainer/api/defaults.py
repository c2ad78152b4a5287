"""What is meant where a job says nothing: the public operator's defaults, no more and no less.

Applying them twice changes nothing. Danger, inherited on purpose: a Worker without `replicas`
gets 0, which validation then refuses; upstream does the same. The namespace is the caller's.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, MPIJob, ReplicaSpec

SSH_AUTH_MOUNT_PATH = "/root/.ssh"
AT_STARTUP = "AtStartup"
WAIT_FOR_WORKERS_READY = "WaitForWorkersReady"
OPEN_MPI = "OpenMPI"
NEVER = "Never"
ON_FAILURE = "OnFailure"
CLEAN_NONE = "None"

T = TypeVar("T")


def with_defaults(job: MPIJob) -> MPIJob:
    spec, policy = job.spec, job.spec.run_policy
    policy = replace(
        policy,
        clean_pod_policy=_or(policy.clean_pod_policy, CLEAN_NONE),
        suspend=bool(policy.suspend),
    )
    spec = replace(
        spec,
        slots_per_worker=_or(spec.slots_per_worker, 1),
        run_launcher_as_worker=bool(spec.run_launcher_as_worker),
        run_policy=policy,
        ssh_auth_mount_path=spec.ssh_auth_mount_path or SSH_AUTH_MOUNT_PATH,
        launcher_creation_policy=spec.launcher_creation_policy or AT_STARTUP,
        mpi_implementation=spec.mpi_implementation or OPEN_MPI,
    )
    if spec.mpi_replica_specs is not None:
        specs = {name: _replica(name, one) for name, one in spec.mpi_replica_specs.items()}
        spec = replace(spec, mpi_replica_specs=specs)
    return replace(job, spec=spec)


def _replica(name: str, spec: ReplicaSpec) -> ReplicaSpec:
    if name not in _REPLICAS:
        return spec
    replicas, restart = _REPLICAS[name]
    return replace(
        spec,
        replicas=_or(spec.replicas, replicas),
        restart_policy=spec.restart_policy or restart,
    )


_REPLICAS = {LAUNCHER: (1, ON_FAILURE), WORKER: (0, NEVER)}


def _or(value: T | None, default: T) -> T:
    return default if value is None else value
