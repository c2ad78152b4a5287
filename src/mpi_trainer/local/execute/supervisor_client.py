"""Whoever a supervisor works for: a terminal that waits, or a directory that anybody reads.

The supervisor asks for its turn, keeps its state before acting on it, tells what happens, and
is told to stop or to take up a changed job. `Channel` is the one in the foreground: a socket to
the process that forked the supervisor, whose closing means *stop*.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.decide.observed import Record
from mpi_trainer.diagnose.rank_lines import Line
from mpi_trainer.local.execute import reports
from mpi_trainer.local.jobs.jobdir import PodState


class Orders(msgspec.Struct, frozen=True):
    """What the supervisor is told: at most a few times in a job's life."""

    stop: bool = False
    kill: bool = False
    job: MPIJob | None = None


class JobSnapshot(msgspec.Struct, frozen=True):
    """How a job stands, to be kept before it is acted upon."""

    job: MPIJob
    record: Record
    pods: tuple[PodState, ...]
    ranks: tuple[reports.RankRow, ...]


class SupervisorClient(Protocol):
    def fileno(self) -> int:
        """Readable when there are orders."""

    def orders(self) -> Orders: ...

    def admitted(self, *, wanted: bool) -> bool:
        """Whether the job may hold resources now; `wanted` False gives them back."""

    def keep(self, look: JobSnapshot) -> None:
        """Danger: what is not kept must not be acted upon, so this may raise."""

    def tell(self, told: Sequence[reports.Report]) -> None: ...


class TerminalClient:
    """A follower at the other end of a socket. Its own terminal, so it never waits for a turn."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    def fileno(self) -> int:
        return self._channel.fileno()

    def orders(self) -> Orders:
        try:
            words = self._channel.recv(64)
        except OSError:
            words = b""
        return Orders(stop=True, kill=not words or reports.KILL in words)

    def admitted(self, *, wanted: bool) -> bool:
        return wanted

    def keep(self, look: JobSnapshot) -> None:
        """Nobody else looks: a job in the foreground ends with its supervisor."""

    def tell(self, told: Sequence[reports.Report]) -> None:
        shown = [t for t in told if not isinstance(t, Line) or t.role == "launcher"]
        with suppress(OSError):  # the other end is gone: `orders` sees that too, and stops
            self._channel.sendall(reports.encode(shown))
