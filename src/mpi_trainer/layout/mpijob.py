"""`layout`: an MPIJob to its Layout. Names, labels, files and variables are upstream's.

What we add beside upstream's: Open MPI 5's variables next to Open MPI 4's, MPICH's retry variable
under the name that MPICH reads, and the agent as far as the job allows it. Nothing of upstream's
is left out, but that workers get no private key where the agent manages SSH.
"""

from __future__ import annotations

from mpi_trainer.api.mpijob import MPIJob
from mpi_trainer.layout import hosts as names
from mpi_trainer.layout.agent import Choice, choice, files, paths, settings
from mpi_trainer.layout.agent.choice import container
from mpi_trainer.layout.agent.scripts import hosts as hosts_file
from mpi_trainer.layout.model import (
    File,
    Host,
    KeyFile,
    Layout,
    Overlay,
    Pairs,
    Part,
    PodLayout,
)
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

# Between the ranks' end and the kubelet's patience, for sshd and the agent itself.
GRACE_MARGIN = 5


def layout(job: MPIJob, domain: str = "", chosen: Choice | None = None) -> Layout:
    """What a validated and defaulted job needs in order to run.

    `chosen` is for executors that have no images: they can run the agent whatever the job says.
    """
    mpi = implementation(job.spec.mpi_implementation or "")
    agent = chosen or choice(job)
    hosts = names.hosts(job, domain)
    hostfile = mpi.hostfile(hosts)
    shown = (
        File(names.HOSTFILE, 0o444, hostfile),
        File(names.DISCOVER_HOSTS, 0o555, names.discovery(job, paths.ALIVE, domain)),
    )
    return Layout(
        name=job.name,
        namespace=job.namespace,
        implementation=mpi.name,
        slots=job.slots,
        hosts=hosts,
        hostfile=hostfile,
        launcher=_launcher(job, mpi, agent, (*shown, *_launcher_scripts(job, hosts, agent))),
        workers=_workers(job, agent),
        agent=agent.level,
        ssh=agent.ssh,
        agent_why=agent.why,
    )


def _launcher(job: MPIJob, mpi: MpiImpl, agent: Choice, shown: tuple[File, ...]) -> PodLayout:
    as_worker = bool(job.spec.run_launcher_as_worker)
    name = names.launcher_name(job.name)
    main = container(job.launcher.template.view.spec.containers)
    command = (*main.command, *main.args)
    return PodLayout(
        name=name,
        role="launcher",
        index=0,
        hostname=name,
        subdomain=job.name,
        labels=_labels(job, "launcher", 0 if as_worker else None),
        env=(
            ("K_MPI_JOB_ROLE", "launcher"),
            *_mpi_env(job, mpi, agent),
            *(() if as_worker else NO_GPU),
        ),
        command=(paths.LAUNCH, *command) if agent.level == "full" else command,
        files=shown,
        keys=(*_upstream_keys(job), *_agent_keys(agent, "private", "host-public")),
        template=job.launcher.template,
        scratch=(paths.SCRATCH,) if agent.managed else (),
        prepare=(paths.PREPARE, "launcher") if agent.managed else (),
        overlays=_overlays(agent),
    )


def _mpi_env(job: MPIJob, mpi: MpiImpl, agent: Choice) -> Pairs:
    ssh_args = f"{SSH_RETRIES} -F {paths.SSH_CONFIG}" if agent.managed else SSH_RETRIES
    given = Settings(hostfile=names.HOSTFILE, slots=job.slots, ssh_args=ssh_args)
    return (
        *mpi.launcher_env(given),
        *(mpi.keyless_env if agent.managed else ()),
        *(mpi.wrapper_env(paths.RANK) if agent.level == "full" else ()),
    )


def _workers(job: MPIJob, agent: Choice) -> tuple[PodLayout, ...]:
    """All alike, but for their names."""
    main = container(job.worker.template.view.spec.containers)
    command = (*main.command, *main.args) or SSHD
    grace = job.worker.template.view.spec.termination_grace_period_seconds - GRACE_MARGIN
    env: Pairs = (("K_MPI_JOB_ROLE", "worker"),)
    if agent.managed:
        command = (paths.WORKER,)
        env = (*env, ("MPI_TRAINER_GRACE", str(max(grace, 1))))
    scripts = files("worker", _settings(job)) if agent.managed else ()
    keys = _agent_keys(agent, "public", "host-private") or _upstream_keys(job)
    return tuple(
        PodLayout(
            name=names.worker_name(job.name, index),
            role="worker",
            index=index,
            hostname=names.worker_name(job.name, index),
            subdomain=job.name,
            labels=_labels(job, "worker", index + bool(job.spec.run_launcher_as_worker)),
            env=env,
            command=command,
            files=scripts,
            keys=keys,
            template=job.worker.template,
            scratch=(paths.SCRATCH,) if agent.managed else (),
            prepare=(paths.PREPARE, "worker") if agent.managed else (),
            overlays=_overlays(agent),
            ready_port=paths.PORT if agent.managed else 0,
        )
        for index in range(job.workers)
    )


def _launcher_scripts(job: MPIJob, hosts: tuple[Host, ...], agent: Choice) -> tuple[File, ...]:
    if not agent.managed:
        return ()
    launcher = names.launcher_name(job.name)
    workers = hosts_file(h for h in hosts if h.pod != launcher)
    return (*files("launcher", _settings(job)), workers)


def _settings(job: MPIJob) -> str:
    return settings(job.metadata.annotations).text()


def _overlays(agent: Choice) -> tuple[Overlay, ...]:
    """An account for whatever user the pod runs as; runtimes mount their own read-only."""
    return (Overlay(paths.PASSWD, "/etc/passwd"),) if agent.managed else ()


def _labels(job: MPIJob, role: str, index: int | None) -> dict[str, str]:
    labels = {LABEL_OPERATOR: "mpi-operator", LABEL_JOB: job.name, LABEL_ROLE: role}
    return labels if index is None else {**labels, LABEL_INDEX: str(index)}


def _agent_keys(agent: Choice, *parts: Part) -> tuple[KeyFile, ...]:
    """Its own copy of each is what the agent works with; these only have to be readable."""
    return tuple(KeyFile(f"{paths.KEYS}/{p}", p, None) for p in parts) if agent.managed else ()


def _upstream_keys(job: MPIJob) -> tuple[KeyFile, ...]:
    """0600 for root, whose ssh refuses a key that others can read; others must read root's file."""
    folder = (job.spec.ssh_auth_mount_path or ROOT_SSH).rstrip("/")
    mode = 0o600 if folder == ROOT_SSH else None
    return (
        KeyFile(f"{folder}/id_rsa", "private", mode),
        KeyFile(f"{folder}/id_rsa.pub", "public", mode),
        KeyFile(f"{folder}/authorized_keys", "public", mode),
    )
