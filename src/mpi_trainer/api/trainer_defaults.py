"""What is meant where a TrainJob or a runtime says nothing: the public definition's defaults.

The API server fills these in from the definition; a file has not been there. Applying them twice
changes nothing.
"""

from __future__ import annotations

from msgspec.structs import replace

from mpi_trainer.api.defaults import OPEN_MPI, SSH_AUTH_MOUNT_PATH
from mpi_trainer.api.kinds.runtime import CLUSTER, MPIPolicy, Runtime
from mpi_trainer.api.kinds.trainjob import CONTROLLER_NAME, GROUP, TrainJob


def of_job(job: TrainJob) -> TrainJob:
    spec, ref = job.spec, job.spec.runtime_ref
    ref = replace(
        ref,
        api_group=GROUP if ref.api_group is None else ref.api_group,
        kind=CLUSTER if ref.kind is None else ref.kind,
    )
    managed_by = CONTROLLER_NAME if spec.managed_by is None else spec.managed_by
    spec = replace(spec, runtime_ref=ref, suspend=bool(spec.suspend), managed_by=managed_by)
    return replace(job, spec=spec)


def of_runtime(runtime: Runtime) -> Runtime:
    policy = runtime.spec.ml_policy
    if policy is None or policy.mpi is None:
        return runtime
    policy = replace(policy, mpi=_mpi(policy.mpi))
    return replace(runtime, spec=replace(runtime.spec, ml_policy=policy))


def _mpi(policy: MPIPolicy) -> MPIPolicy:
    procs = policy.num_proc_per_node
    return MPIPolicy(
        num_proc_per_node=1 if procs is None else procs,
        mpi_implementation=policy.mpi_implementation or OPEN_MPI,
        ssh_auth_mount_path=policy.ssh_auth_mount_path or SSH_AUTH_MOUNT_PATH,
        run_launcher_as_node=bool(policy.run_launcher_as_node),
    )
