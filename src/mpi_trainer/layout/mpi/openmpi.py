"""Open MPI, 4 and 5 from one configuration.

Version 5 reads none of version 4's ORTE variables: with those alone it never sees the hostfile
and runs every rank on the launcher. Both families are set side by side; each ignores the other's.
"""

from __future__ import annotations

from mpi_trainer.layout.model import Host, Pairs
from mpi_trainer.layout.mpi.model import MpiImpl, MpiSettings


def hostfile(hosts: tuple[Host, ...]) -> str:
    return "".join(f"{h.address} slots={h.slots}\n" for h in hosts)


# Version 4 copies each host name, up to its first digit, into 50 bytes of its stack.
LONGEST_COPIED = 40


def launcher_env(settings: MpiSettings) -> Pairs:
    return (
        *_plain_names(settings.hosts),
        ("OMPI_MCA_orte_keep_fqdn_hostnames", "true"),
        ("OMPI_MCA_orte_default_hostfile", settings.hostfile),
        ("OMPI_MCA_plm_rsh_args", settings.ssh_args),
        ("OMPI_MCA_orte_set_default_slots", str(settings.slots)),
        ("PRTE_MCA_prte_keep_fqdn_hostnames", "true"),
        ("PRTE_MCA_prte_default_hostfile", settings.hostfile),
        ("PRTE_MCA_plm_ssh_args", settings.ssh_args),
        ("PRTE_MCA_prte_set_default_slots", str(settings.slots)),
    )


def _plain_names(hosts: tuple[str, ...]) -> Pairs:
    """Has version 4 write its list of hosts in full, where shortening it would smash its stack."""
    smashes = any(_copied(name) > LONGEST_COPIED for name in hosts)
    return (("OMPI_MCA_regx", "naive"),) if smashes else ()


def _copied(name: str) -> int:
    return next((place for place, letter in enumerate(name) if letter.isdigit()), len(name))


def shared_machine_env(interface: str) -> Pairs:
    """Every daemon believes that it owns the machine and would pin its first rank to core 0.

    On the loopback device all hosts have one name and one /dev/shm, and shared memory segments
    are named after the host: ranks of two workers would write into the same one.
    """
    return (
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_hwloc_base_binding_policy", "none"),
        ("PRTE_MCA_hwloc_default_binding_policy", "none"),
        ("OMPI_MCA_mpi_yield_when_idle", "1"),
        ("OMPI_MCA_btl", "self,tcp" if interface == "lo" else "^ofi"),
        ("OMPI_MCA_btl_tcp_if_include", interface),
        ("OMPI_MCA_oob_tcp_if_include", interface),
        ("PRTE_MCA_prte_if_include", interface),
    )


def wrapper_env(program: str) -> Pairs:
    return (
        ("OMPI_MCA_orte_fork_agent", program),
        ("PRTE_MCA_odls_base_exec_agent", program),
    )


IMPL = MpiImpl(
    name="OpenMPI",
    hostfile=hostfile,
    launcher_env=launcher_env,
    shared_machine_env=shared_machine_env,
    wrapper_env=wrapper_env,
    tag_option="--tag-output",
    keyless_env=(
        ("OMPI_MCA_plm_rsh_no_tree_spawn", "1"),
        ("PRTE_MCA_plm_ssh_no_tree_spawn", "1"),
    ),
)
