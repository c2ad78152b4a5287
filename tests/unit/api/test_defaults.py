from __future__ import annotations

from mpi_trainer.api.defaults import mpijob_with_defaults
from mpi_trainer.api.kinds.mpijob import MPIJob, MPIJobSpec, ReplicaSpec, RunPolicy


def test_empty_job_gets_upstreams_defaults() -> None:
    """API-1."""
    roles = {"Launcher": ReplicaSpec(), "Worker": ReplicaSpec(), "other": ReplicaSpec()}
    spec = mpijob_with_defaults(MPIJob(spec=MPIJobSpec(mpi_replica_specs=roles))).spec
    assert spec == MPIJobSpec(
        slots_per_worker=1,
        run_launcher_as_worker=False,
        run_policy=RunPolicy(clean_pod_policy="None", suspend=False),
        mpi_replica_specs={
            "Launcher": ReplicaSpec(replicas=1, restart_policy="OnFailure"),
            "Worker": ReplicaSpec(replicas=0, restart_policy="Never"),
            "other": ReplicaSpec(),
        },
        ssh_auth_mount_path="/root/.ssh",
        launcher_creation_policy="AtStartup",
        mpi_implementation="OpenMPI",
    )


def test_what_was_said_is_kept() -> None:
    spec = MPIJobSpec(
        slots_per_worker=0,
        run_launcher_as_worker=True,
        run_policy=RunPolicy(clean_pod_policy="", suspend=True),
        ssh_auth_mount_path="/x",
        launcher_creation_policy="WaitForWorkersReady",
        mpi_implementation="MPICH",
        mpi_replica_specs={"Worker": ReplicaSpec(replicas=3, restart_policy="OnFailure")},
    )
    assert mpijob_with_defaults(MPIJob(spec=spec)).spec == spec


def test_missing_replica_specs_stay_missing_and_the_namespace_is_left_alone() -> None:
    job = mpijob_with_defaults(MPIJob())
    assert job.spec.mpi_replica_specs is None
    assert job.namespace == ""
