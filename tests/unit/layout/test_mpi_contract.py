"""What every MPI implementation keeps, whichever it is."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations

import pytest

from mpi_trainer.api.kinds.mpijob import IMPLEMENTATIONS
from mpi_trainer.layout.model import Host
from mpi_trainer.layout.mpi import RANK_MARK, REGISTRY, MpiImpl, MpiSettings, implementation

HOSTS = (
    Host("a-launcher", "a-launcher.a.ns.svc", 4),
    Host("a-worker-10", "a-worker-10.a.ns.svc", 16),
)
SETTINGS = MpiSettings(hostfile="/etc/mpi/hostfile", slots=7, ssh_args="-o ConnectionAttempts=10")
INTERFACES = ("eth0", "lo")
_LINE = re.compile(r"(\S+?)(?: slots=|:)(\d+)\n")

# Lines recorded from these versions, run with their `tag_option`.
TAGGED = [
    ("Open MPI 5.0.11", "[1,0]<stdout>: hello from 0", 0, " hello from 0"),
    ("Open MPI 5.0.11", "[1,1]<stderr>: oops", 1, " oops"),
    ("Open MPI 4.1.8", "[1,1]<stdout>:hello from 1", 1, "hello from 1"),
    ("Open MPI 4.1.8", "[1,1]<stderr>:oops", 1, "oops"),
    ("MPICH 5.0.2", "[1,9]<stdout>:hello from 9", 9, "hello from 9"),
    ("Intel MPI 2021.18.1", "[1,10]<stdout>:hello from 10", 10, "hello from 10"),
]
# Written by hand after the shape of such lines.
UNTAGGED = [
    "[node:00071] *** An error occurred in MPI_Recv",
    "[1,0] is a list",
    "[3] a line of the program's own",
    "prterun noticed that process rank 1 exited on signal 9",
    "[mpiexec@node] HYDU_sock_connect: unable to connect",
    "[proxy:0@node] launch_procs: unable to change wdir",
]

every = pytest.mark.parametrize("impl", REGISTRY, ids=lambda impl: impl.name)


@pytest.mark.parametrize(
    ("host", "plain"),
    [("a" * 40, False), ("a" * 41, True), ("a" * 30 + "7" + "a" * 30, False), ("", False)],
)
def test_open_mpi_4_writes_long_host_names_in_full(host: str, plain: bool) -> None:
    """W-7: it copies a name up to its first digit into 50 bytes of its stack."""
    given = dict(implementation("OpenMPI").launcher_env(MpiSettings("h", 1, "", (host, "b"))))
    assert given.get("OMPI_MCA_regx") == ("naive" if plain else None)


def all_env(impl: MpiImpl, interface: str) -> tuple[tuple[str, str], ...]:
    return (
        *impl.launcher_env(SETTINGS),
        *impl.shared_machine_env(interface),
        *impl.wrapper_env("/agent/rank"),
    )


def test_implementations_are_those_that_the_api_accepts() -> None:
    """CTL-4 (3)."""
    assert sorted(impl.name for impl in REGISTRY) == sorted(IMPLEMENTATIONS)


@every
def test_implementation_is_found_by_its_name(impl: MpiImpl) -> None:
    assert implementation(impl.name) is impl


@every
def test_hostfile_reads_back_as_hosts_and_slots_in_order(impl: MpiImpl) -> None:
    text = impl.hostfile(HOSTS)
    assert _LINE.sub("", text) == ""
    assert _LINE.findall(text) == [(h.address, str(h.slots)) for h in HOSTS]


@every
def test_hostfile_of_no_host_is_empty(impl: MpiImpl) -> None:
    assert impl.hostfile(()) == ""


@every
@pytest.mark.parametrize("interface", INTERFACES)
def test_no_variable_is_set_twice(impl: MpiImpl, interface: str) -> None:
    counted = Counter(name for name, _ in all_env(impl, interface))
    assert [name for name, times in counted.items() if times > 1] == []


@every
def test_launcher_is_told_the_hostfile_and_the_ssh_options(impl: MpiImpl) -> None:
    values = [value for _, value in impl.launcher_env(SETTINGS)]
    assert SETTINGS.hostfile in values
    assert SETTINGS.ssh_args in values


@every
@pytest.mark.parametrize("interface", INTERFACES)
def test_shared_machine_uses_the_interface_that_it_is_given(impl: MpiImpl, interface: str) -> None:
    assert interface in [value for _, value in impl.shared_machine_env(interface)]


@every
def test_rank_wrapper_is_named_in_a_variable(impl: MpiImpl) -> None:
    values = [value for _, value in impl.wrapper_env("/agent/rank")]
    assert values
    assert all(value.partition(":")[0] == "/agent/rank" for value in values)


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize(
    "pair", list(combinations(REGISTRY, 2)), ids=lambda pair: "-".join(i.name for i in pair)
)
def test_variables_of_two_implementations_agree_where_they_meet(
    pair: tuple[MpiImpl, MpiImpl], interface: str
) -> None:
    one, other = (dict(all_env(impl, interface)) for impl in pair)
    shared = one.keys() & other.keys()
    assert {name: one[name] for name in shared} == {name: other[name] for name in shared}
    assert shared <= {"FI_PROVIDER", "FI_TCP_IFACE"}, "only libfabric is common ground"


# What Open MPI 5 calls the settings of its runtime that Open MPI 4 has under the name on the left.
RENAMED = {
    "OMPI_MCA_orte_keep_fqdn_hostnames": "PRTE_MCA_prte_keep_fqdn_hostnames",
    "OMPI_MCA_orte_default_hostfile": "PRTE_MCA_prte_default_hostfile",
    "OMPI_MCA_orte_set_default_slots": "PRTE_MCA_prte_set_default_slots",
    "OMPI_MCA_plm_rsh_args": "PRTE_MCA_plm_ssh_args",
    "OMPI_MCA_hwloc_base_binding_policy": "PRTE_MCA_hwloc_default_binding_policy",
    "OMPI_MCA_oob_tcp_if_include": "PRTE_MCA_prte_if_include",
    "OMPI_MCA_orte_fork_agent": "PRTE_MCA_odls_base_exec_agent",
}
# Settings of the MPI library, which both versions read under one name.
SAME_IN_BOTH = {
    "OMPI_ALLOW_RUN_AS_ROOT",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
    "OMPI_MCA_mpi_yield_when_idle",
    "OMPI_MCA_btl",
    "OMPI_MCA_btl_tcp_if_include",
}


def test_open_mpi_5_is_told_all_that_open_mpi_4_is_told() -> None:
    """Open MPI 5 runs every rank on the launcher where its own variables are missing."""
    env = dict(all_env(implementation("OpenMPI"), "eth0"))
    assert {old: env.get(old) for old in RENAMED} == {
        old: env.get(new) for old, new in RENAMED.items()
    }
    assert env.keys() == RENAMED.keys() | set(RENAMED.values()) | SAME_IN_BOTH


def test_mpich_is_told_its_ssh_options_under_the_name_that_it_reads() -> None:
    env = dict(implementation("MPICH").launcher_env(SETTINGS))
    assert env["HYDRA_LAUNCHER_EXTRA_ARGS"] == SETTINGS.ssh_args


def test_intel_is_told_its_slots_by_variable() -> None:
    """It ignores those in the hostfile."""
    assert dict(implementation("Intel").launcher_env(SETTINGS))["I_MPI_PERHOST"] == "7"


@pytest.mark.parametrize(("who", "line", "rank", "text"), TAGGED)
def test_recorded_mark_gives_the_rank(who: str, line: str, rank: int, text: str) -> None:
    found = re.match(RANK_MARK, line)
    assert found, who
    assert (int(found["rank"]), line[found.end() :]) == (rank, text)


@pytest.mark.parametrize("line", UNTAGGED)
def test_line_of_mpi_itself_has_no_rank(line: str) -> None:
    assert not re.match(RANK_MARK, line)


@every
def test_option_makes_the_mark(impl: MpiImpl) -> None:
    """Open MPI's option has the mark built in; any other must spell it out."""
    _, spelt_out, pattern = impl.tag_option.partition("=")
    assert impl.tag_option.startswith("-")
    assert not spelt_out or re.fullmatch(RANK_MARK, pattern.replace("%r", "12"))
