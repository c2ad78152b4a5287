"""The defaults of MPIJobs, TrainJobs and runtimes: upstream's, no more and no less.

Applying them twice changes nothing. Those of an MPIJob are the public operator's: a Worker without
`replicas` gets 0, which validation then refuses, as upstream does. Those of a TrainJob and a
runtime stand in the public definitions, from which the API server fills them in; a file has not
been there. The namespace is the caller's.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from mpi_trainer.api.kinds.managers import TRAINJOB_CONTROLLER
from mpi_trainer.api.kinds.mpijob import LAUNCHER, OPEN_MPI, WORKER, MPIJob, ReplicaSpec
from mpi_trainer.api.kinds.runtime import CLUSTER, MPIPolicy, Runtime
from mpi_trainer.api.kinds.trainjob import GROUP, TrainJob

SSH_AUTH_MOUNT_PATH = "/root/.ssh"
AT_STARTUP = "AtStartup"
WAIT_FOR_WORKERS_READY = "WaitForWorkersReady"
NEVER = "Never"
ON_FAILURE = "OnFailure"
CLEAN_NONE = "None"

T = TypeVar("T")


def mpijob_with_defaults(job: MPIJob) -> MPIJob:
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


def trainjob_with_defaults(job: TrainJob) -> TrainJob:
    spec, ref = job.spec, job.spec.runtime_ref
    ref = replace(
        ref,
        api_group=GROUP if ref.api_group is None else ref.api_group,
        kind=CLUSTER if ref.kind is None else ref.kind,
    )
    managed_by = TRAINJOB_CONTROLLER if spec.managed_by is None else spec.managed_by
    spec = replace(spec, runtime_ref=ref, suspend=bool(spec.suspend), managed_by=managed_by)
    return replace(job, spec=spec)


def runtime_with_defaults(runtime: Runtime) -> Runtime:
    policy = runtime.spec.ml_policy
    if policy is None or policy.mpi is None:
        return runtime
    policy = replace(policy, mpi=_mpi_policy(policy.mpi))
    return replace(runtime, spec=replace(runtime.spec, ml_policy=policy))


def _mpi_policy(policy: MPIPolicy) -> MPIPolicy:
    procs = policy.num_proc_per_node
    return MPIPolicy(
        num_proc_per_node=1 if procs is None else procs,
        mpi_implementation=policy.mpi_implementation or OPEN_MPI,
        ssh_auth_mount_path=policy.ssh_auth_mount_path or SSH_AUTH_MOUNT_PATH,
        run_launcher_as_node=bool(policy.run_launcher_as_node),
    )


def _or(value: T | None, default: T) -> T:
    return default if value is None else value
