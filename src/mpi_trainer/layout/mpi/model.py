"""What an MPI implementation is to us: a name, a hostfile, variables, and how ranks are told apart.

One file per implementation holds one value of this type. No other code asks for its name.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from mpi_trainer.layout.model import Host, Pairs

# Open MPI's own mark; the others are told to write the same. Open MPI 5 adds a space. Programs can
# write anything like it: no bracket within, or a line of brackets is searched once for each.
RANK_MARK = r"\[[^,\[\]\s]{1,400},(?P<rank>\d{1,7})\]<std(?:out|err)>:"
HYDRA_MARK = "-prepend-pattern=[1,%r]<stdout>:"


class MpiSettings(msgspec.Struct, frozen=True):
    """What the launcher's variables are made from; `hosts` are the names that the MPI meets."""

    hostfile: str
    slots: int
    ssh_args: str
    hosts: tuple[str, ...] = ()


class MpiImpl(msgspec.Struct, frozen=True):
    """An implementation.

    `launcher_env` is set everywhere. `shared_machine_env` only where several hosts are one
    machine: no core pinning, ranks that yield, one network interface. `wrapper_env` puts a
    program before every rank. `keyless_env` keeps workers from starting each other over SSH,
    which they cannot do without the private key. `tag_option` makes mpirun put `RANK_MARK` before
    every line, and before every piece of a line that a rank wrote in pieces.
    """

    name: str
    hostfile: Callable[[tuple[Host, ...]], str]
    launcher_env: Callable[[MpiSettings], Pairs]
    shared_machine_env: Callable[[str], Pairs]
    wrapper_env: Callable[[str], Pairs]
    tag_option: str
    keyless_env: Pairs = ()
