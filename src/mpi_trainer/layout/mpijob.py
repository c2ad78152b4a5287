"""`layout`: an MPIJob to its Layout. Names, labels, files and variables are upstream's.

What we add beside upstream's: Open MPI 5's variables next to Open MPI 4's, and MPICH's retry
variable under the name that MPICH reads. Nothing of upstream's is left out. `discover_hosts.sh`
is the script of the start, when no worker runs yet; `hosts.discover_hosts` makes the later ones.
"""

from __future__ import annotations

from mpi_trainer.api.mpijob import MPIJob, ReplicaSpec
from mpi_trainer.api.pods import Container
from mpi_trainer.layout import hosts as names
from mpi_trainer.layout.model import File, KeyFile, Layout, Pairs, PodLayout
from mpi_trainer.layout.mpi import MpiImpl, Settings, implementation

SSHD = ("/usr/sbin/sshd", "-De")
ROOT_SSH = "/root/.ssh"
SSH_RETRIES = "-o ConnectionAttempts=10"

LABEL_OPERATOR = "training.kubeflow.org/operator-name"
LABEL_JOB = "training.kubeflow.org/job-name"
LABEL_ROLE = "training.kubeflow.org/job-role"
LABEL_INDEX = "training.kubeflow.org/replica-index"

# A launcher that runs no rank must not hold a GPU: these two keep the container runtime from
# giving it all of them.
NO_GPU: Pairs = (("NVIDIA_VISIBLE_DEVICES", ""), ("NVIDIA_DRIVER_CAPABILITIES", ""))


def layout(job: MPIJob, domain: str = "") -> Layout:
    """What a validated and defaulted job needs in order to run."""
    mpi = implementation(job.spec.mpi_implementation or "")
    hosts = names.hosts(job, domain)
    hostfile = mpi.hostfile(hosts)
    files = (
        File(names.HOSTFILE, 0o444, hostfile),
        File(names.DISCOVER_HOSTS, 0o555, names.discover_hosts(job, domain=domain)),
    )
    return Layout(
        name=job.name,
        namespace=job.namespace,
        implementation=mpi.name,
        slots=job.slots,
        hosts=hosts,
        hostfile=hostfile,
        launcher=_launcher(job, mpi, files),
        workers=tuple(_worker(job, i) for i in range(job.workers)),
    )


def _launcher(job: MPIJob, mpi: MpiImpl, files: tuple[File, ...]) -> PodLayout:
    settings = Settings(hostfile=names.HOSTFILE, slots=job.slots, ssh_args=SSH_RETRIES)
    as_worker = bool(job.spec.run_launcher_as_worker)
    name = names.launcher_name(job.name)
    container = _container(job.launcher)
    return PodLayout(
        name=name,
        role="launcher",
        index=0,
        hostname=name,
        subdomain=job.name,
        labels=_labels(job, "launcher", 0 if as_worker else None),
        env=(
            ("K_MPI_JOB_ROLE", "launcher"),
            *mpi.launcher_env(settings),
            *(() if as_worker else NO_GPU),
        ),
        command=(*container.command, *container.args),
        files=files,
        keys=_keys(job),
        template=job.launcher.template,
    )


def _worker(job: MPIJob, index: int) -> PodLayout:
    name = names.worker_name(job.name, index)
    container = _container(job.worker)
    return PodLayout(
        name=name,
        role="worker",
        index=index,
        hostname=name,
        subdomain=job.name,
        labels=_labels(job, "worker", index + bool(job.spec.run_launcher_as_worker)),
        env=(("K_MPI_JOB_ROLE", "worker"),),
        command=(*container.command, *container.args) or SSHD,
        files=(),
        keys=_keys(job),
        template=job.worker.template,
    )


def _labels(job: MPIJob, role: str, index: int | None) -> dict[str, str]:
    labels = {LABEL_OPERATOR: "mpi-operator", LABEL_JOB: job.name, LABEL_ROLE: role}
    return labels if index is None else {**labels, LABEL_INDEX: str(index)}


def _keys(job: MPIJob) -> tuple[KeyFile, ...]:
    """0600 for root, whose ssh refuses a key that others can read; others must read root's file."""
    folder = (job.spec.ssh_auth_mount_path or ROOT_SSH).rstrip("/")
    mode = 0o600 if folder == ROOT_SSH else None
    return (
        KeyFile(f"{folder}/id_rsa", "private", mode),
        KeyFile(f"{folder}/id_rsa.pub", "public", mode),
        KeyFile(f"{folder}/authorized_keys", "public", mode),
    )


def _container(replica: ReplicaSpec) -> Container:
    containers = replica.template.view.spec.containers
    return containers[0] if containers else Container()
