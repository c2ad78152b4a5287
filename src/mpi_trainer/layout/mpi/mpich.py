"""MPICH, by its Hydra launcher.

`HYDRA_LAUNCHER_EXTRA_ARGS` is the name that MPICH reads; upstream's `HYDRA_LAUNCH_EXTRA_ARGS` is
set beside it only because manifests may refer to it. MPICH has no variable that puts a program
before every rank, so its mpiexec is stood in for by the agent's shim.
"""

from __future__ import annotations

from mpi_trainer.layout.model import Host, Pairs
from mpi_trainer.layout.mpi.model import HYDRA_MARK, MpiImpl, MpiSettings


def hostfile(hosts: tuple[Host, ...]) -> str:
    return "".join(f"{h.address}:{h.slots}\n" for h in hosts)


def launcher_env(settings: MpiSettings) -> Pairs:
    return (
        ("HYDRA_HOST_FILE", settings.hostfile),
        ("HYDRA_LAUNCHER_EXTRA_ARGS", settings.ssh_args),
        ("HYDRA_LAUNCH_EXTRA_ARGS", settings.ssh_args),
    )


def shared_machine_env(interface: str) -> Pairs:
    """UCX refuses TCP on the loopback device; there libfabric carries the data."""
    if interface == "lo":
        return (
            ("HYDRA_IFACE", interface),
            ("MPIR_CVAR_CH4_NETMOD", "ofi"),
            ("FI_PROVIDER", "tcp"),
            ("FI_TCP_IFACE", interface),
        )
    return (("HYDRA_IFACE", interface), ("UCX_NET_DEVICES", interface))


def wrapper_env(program: str) -> Pairs:
    return (("MPI_TRAINER_RANK_WRAPPER", program),)


IMPL = MpiImpl(
    name="MPICH",
    hostfile=hostfile,
    launcher_env=launcher_env,
    shared_machine_env=shared_machine_env,
    wrapper_env=wrapper_env,
    tag_option=HYDRA_MARK,
)
