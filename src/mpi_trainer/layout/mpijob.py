"""`layout`: an MPIJob to its Layout. Names, labels, files and variables are upstream's.

What we add beside upstream's: Open MPI 5's variables next to Open MPI 4's, MPICH's retry variable
under the name that MPICH reads, and the agent as far as the job allows it.
"""

from __future__ import annotations

from mpi_trainer.api.kinds.labels import (
    LABEL_INDEX,
    LABEL_JOB,
    LABEL_OPERATOR,
    LABEL_REPLICA_TYPE,
    LABEL_ROLE,
    MPI_OPERATOR,
)
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.layout import hosts as names
from mpi_trainer.layout.agent import paths
from mpi_trainer.layout.agent.choice import Choice, choice
from mpi_trainer.layout.model import File, Layout, Pairs
from mpi_trainer.layout.mpi_layout import (
    ROOT_SSH,
    Role,
    Topology,
    TopologyPod,
    mpi_layout,
    upstream_keys,
)

# A launcher that runs no rank must not hold a GPU: these two keep the container runtime from
# giving it all of them.
NO_GPU: Pairs = (("NVIDIA_VISIBLE_DEVICES", ""), ("NVIDIA_DRIVER_CAPABILITIES", ""))


def layout(job: MPIJob, domain: str = "", chosen: Choice | None = None) -> Layout:
    """What a validated and defaulted job needs in order to run.

    `chosen` is for executors that have no images: they can run the agent whatever the job says.
    """
    return mpi_layout(_topology(job, domain), chosen or choose(job))


def choose(job: MPIJob) -> Choice:
    """How much of the agent the job gets."""
    return choice(job.metadata.annotations, job.launcher.template, job.worker.template)


def _topology(job: MPIJob, domain: str) -> Topology:
    as_worker = bool(job.spec.run_launcher_as_worker)
    launcher = TopologyPod(
        names.launcher_name(job.name), _labels(job, "launcher", 0 if as_worker else None)
    )
    workers = tuple(
        TopologyPod(names.worker_name(job.name, index), _labels(job, "worker", index + as_worker))
        for index in range(job.workers)
    )
    script = names.discovery(job, paths.ALIVE, domain)
    return Topology(
        name=job.name,
        namespace=job.namespace,
        subdomain=job.name,
        implementation=job.spec.mpi_implementation or "",
        slots=job.slots,
        hosts=names.hosts(job, domain),
        launcher=Role((launcher,), job.launcher.template, () if as_worker else NO_GPU),
        workers=Role(workers, job.worker.template),
        keys=upstream_keys(job.spec.ssh_auth_mount_path or ROOT_SSH),
        annotations=job.metadata.annotations,
        files=(File(names.DISCOVER_HOSTS, 0o555, script),),
    )


def _labels(job: MPIJob, role: str, index: int | None) -> dict[str, str]:
    labels = {
        LABEL_OPERATOR: MPI_OPERATOR,
        LABEL_JOB: job.name,
        LABEL_ROLE: role,
        LABEL_REPLICA_TYPE: role,
    }
    return labels if index is None else {**labels, LABEL_INDEX: str(index)}
