"""Intel MPI. It ignores the slots of its hostfile: `I_MPI_PERHOST` is what spreads the ranks."""

from __future__ import annotations

from mpi_trainer.layout.model import Host, Pairs
from mpi_trainer.layout.mpi.model import HYDRA_MARK, MpiImpl, MpiSettings


def hostfile(hosts: tuple[Host, ...]) -> str:
    return "".join(f"{h.address}:{h.slots}\n" for h in hosts)


def launcher_env(settings: MpiSettings) -> Pairs:
    return (
        ("I_MPI_HYDRA_HOST_FILE", settings.hostfile),
        ("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", settings.ssh_args),
        ("I_MPI_PERHOST", str(settings.slots)),
    )


def shared_machine_env(interface: str) -> Pairs:
    return (
        ("I_MPI_HYDRA_IFACE", interface),
        ("I_MPI_THREAD_YIELD", "2"),
        ("I_MPI_PIN", "0"),
        ("FI_PROVIDER", "tcp"),
        ("FI_TCP_IFACE", interface),
    )


def wrapper_env(program: str) -> Pairs:
    return (("I_MPI_GTOOL", f"{program}:all"),)


IMPL = MpiImpl(
    name="Intel",
    hostfile=hostfile,
    launcher_env=launcher_env,
    shared_machine_env=shared_machine_env,
    wrapper_env=wrapper_env,
    # From 17 hosts on, some would start others; 0 means no such tree.
    keyless_env=(("I_MPI_HYDRA_BRANCH_COUNT", "0"),),
    tag_option=HYDRA_MARK,
)
