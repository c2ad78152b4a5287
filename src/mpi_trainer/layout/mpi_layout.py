"""An MPI job of any kind, and the Layout that it gets: what all kinds share.

A kind says which pods there are (`Topology`); `mpi_layout` adds what MPI and the agent need:
hostfile, variables, keys, scripts, argv. Guarantee: two kinds that say the same get the same pods.
Nothing that upstream gives a pod is left out, but that workers get no private key where the agent
manages SSH.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.layout.agent import paths
from mpi_trainer.layout.agent.choice import Choice, container, settings
from mpi_trainer.layout.agent.scripts import files
from mpi_trainer.layout.agent.scripts import hosts as hosts_file
from mpi_trainer.layout.agent.scripts import names as names_script
from mpi_trainer.layout.hosts import HOSTFILE
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
from mpi_trainer.layout.mpi import MpiImpl, MpiSettings, implementation

SSHD = ("/usr/sbin/sshd", "-De")
ROOT_SSH = "/root/.ssh"
SSH_RETRIES = "-o ConnectionAttempts=10"

# Between the ranks' end and the kubelet's patience, for sshd and the agent itself.
GRACE_MARGIN = 5


class TopologyPod(msgspec.Struct, frozen=True):
    """One pod: its name, which is also its host name, and the labels that are its own."""

    name: str
    labels: Mapping[str, str]


class Role(msgspec.Struct, frozen=True):
    """The pods of one role. `env` wins over MPI's variables; `container` runs the job, "" is the
    first one."""

    pods: tuple[TopologyPod, ...]
    template: PodTemplate
    env: Pairs = ()
    container: str = ""


class Topology(msgspec.Struct, frozen=True):
    """The pods of a job by role; `launcher` has one. `files` come beside the hostfile."""

    name: str
    namespace: str
    subdomain: str
    implementation: str
    slots: int
    hosts: tuple[Host, ...]
    launcher: Role
    workers: Role
    keys: tuple[KeyFile, ...]
    annotations: Mapping[str, str]
    files: tuple[File, ...] = ()


def mpi_layout(topology: Topology, agent: Choice) -> Layout:
    mpi = implementation(topology.implementation)
    hostfile = mpi.hostfile(topology.hosts)
    beside = (File(HOSTFILE, 0o444, hostfile), *topology.files)
    return Layout(
        name=topology.name,
        namespace=topology.namespace,
        implementation=mpi.name,
        slots=topology.slots,
        hosts=topology.hosts,
        hostfile=hostfile,
        launcher=_launcher(topology, mpi, agent, (*beside, *_launcher_scripts(topology, agent))),
        workers=_workers(topology, agent),
        agent=agent.level,
        ssh=agent.ssh,
        agent_why=agent.why,
    )


def _launcher(
    topology: Topology, mpi: MpiImpl, agent: Choice, files: tuple[File, ...]
) -> PodLayout:
    role = topology.launcher
    (pod,) = role.pods
    main = container(role.template.view.spec.containers, role.container)
    command = (*_before(agent), *main.command, *main.args)
    watched = agent.level == "full" and settings(topology.annotations).suspect > 0
    return PodLayout(
        name=pod.name,
        role="launcher",
        index=0,
        hostname=pod.name,
        subdomain=topology.subdomain,
        labels=pod.labels,
        env=(("K_MPI_JOB_ROLE", "launcher"), *_mpi_env(topology, mpi, agent), *role.env),
        command=command,
        files=files,
        keys=(*topology.keys, *_agent_keys(agent, "private", "host-public")),
        template=role.template,
        container=role.container,
        scratch=(paths.SCRATCH,) if agent.managed else (),
        prepare=(paths.PREPARE, "launcher") if agent.managed else (),
        overlays=_overlays(agent),
        quiet_mark=paths.QUIET if watched else "",
    )


def _before(agent: Choice) -> tuple[str, ...]:
    """What stands before the launcher's command."""
    if agent.level == "full":
        return (paths.LAUNCH,)
    return (paths.NAMES,) if agent.names else ()


def _mpi_env(topology: Topology, mpi: MpiImpl, agent: Choice) -> Pairs:
    ssh_args = f"{SSH_RETRIES} -F {paths.SSH_CONFIG}" if agent.managed else SSH_RETRIES
    names = (topology.launcher.pods[0].name, *(host.address for host in topology.hosts))
    given = MpiSettings(hostfile=HOSTFILE, slots=topology.slots, ssh_args=ssh_args, hosts=names)
    return (
        *mpi.launcher_env(given),
        *(mpi.keyless_env if agent.managed else ()),
        *(mpi.wrapper_env(paths.RANK) if agent.level == "full" else ()),
    )


def _workers(topology: Topology, agent: Choice) -> tuple[PodLayout, ...]:
    """All alike, but for their names."""
    role = topology.workers
    main = container(role.template.view.spec.containers, role.container)
    command = (*main.command, *main.args) or SSHD
    env: Pairs = (("K_MPI_JOB_ROLE", "worker"), *role.env)
    if agent.managed:
        command = (paths.WORKER,)
    scripts = files("worker", _settings(topology)) if agent.managed else ()
    keys = _agent_keys(agent, "public", "host-private") or topology.keys
    scratch = (paths.SCRATCH,) if agent.managed else ()
    prepare = (paths.PREPARE, "worker") if agent.managed else ()
    overlays = _overlays(agent)
    port = paths.PORT if agent.managed else 0
    return tuple(
        PodLayout(
            name=pod.name,
            role="worker",
            index=index,
            hostname=pod.name,
            subdomain=topology.subdomain,
            labels=pod.labels,
            env=env,
            command=command,
            files=scripts,
            keys=keys,
            template=role.template,
            container=role.container,
            scratch=scratch,
            prepare=prepare,
            overlays=overlays,
            ready_port=port,
        )
        for index, pod in enumerate(role.pods)
    )


def _launcher_scripts(topology: Topology, agent: Choice) -> tuple[File, ...]:
    if not agent.managed:
        return names_script() if agent.names else ()
    launcher = topology.launcher.pods[0].name
    workers = hosts_file(h for h in topology.hosts if h.pod != launcher)
    return (*files("launcher", _settings(topology)), workers)


def _settings(topology: Topology) -> str:
    """Not variables of the pods: each pod would store them."""
    patience = topology.workers.template.view.spec.termination_grace_period_seconds
    grace = max(patience - GRACE_MARGIN, 1)
    return f"{settings(topology.annotations).text()}grace_seconds={grace}\n"


def _overlays(agent: Choice) -> tuple[Overlay, ...]:
    """An account for whatever user the pod runs as; runtimes mount their own read-only."""
    return (Overlay(paths.PASSWD, "/etc/passwd"),) if agent.managed else ()


def _agent_keys(agent: Choice, *parts: Part) -> tuple[KeyFile, ...]:
    """Its own copy of each is what the agent works with; these only have to be readable."""
    return tuple(KeyFile(f"{paths.KEYS}/{p}", p, None) for p in parts) if agent.managed else ()


def upstream_keys(path: str) -> tuple[KeyFile, ...]:
    """The key files that images made for upstream look for.

    0600 for root, whose ssh refuses a key that others can read; others must read root's file.
    """
    folder = path.rstrip("/")
    mode = 0o600 if folder == ROOT_SSH else None
    return (
        KeyFile(f"{folder}/id_rsa", "private", mode),
        KeyFile(f"{folder}/id_rsa.pub", "public", mode),
        KeyFile(f"{folder}/authorized_keys", "public", mode),
    )
