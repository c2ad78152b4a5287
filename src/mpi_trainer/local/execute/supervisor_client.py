"""For whom a supervisor runs a job: a process that waits at a terminal, or the job's directory.

The supervisor asks it for admission, has it save a snapshot before acting on it, sends it reports,
and gets orders from it: stop, kill, or a changed job. `TerminalClient` is the one in the
foreground: a socket to the process that forked the supervisor; closing the socket means *stop*.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from mpi_trainer.api.kinds import conditions
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.decide.observed import Record
from mpi_trainer.diagnose.rank_lines import Line
from mpi_trainer.local.execute import reports
from mpi_trainer.local.jobs.jobdir import PodState


class Orders(msgspec.Struct, frozen=True):
    """To the supervisor: a few times in a job's life."""

    stop: bool = False
    kill: bool = False
    job: MPIJob | None = None


class JobSnapshot(msgspec.Struct, frozen=True):
    """The state of a job, to be saved before it is acted upon."""

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

    def save(self, snapshot: JobSnapshot) -> None:
        """Danger: what is not saved must not be acted upon, so this may raise."""

    def report(self, pending: Sequence[reports.Report]) -> None: ...


class TerminalClient:
    """The process at the other end of a socket. Its job never waits for admission."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._failures = 0
        self._failed_pods: tuple[reports.PodEnd, ...] = ()

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

    def save(self, snapshot: JobSnapshot) -> None:
        """Nothing is saved, since a job in the foreground ends with its supervisor. How pods have
        ended is told with the job's end, when they may be gone."""
        failures = len(snapshot.record.failures)
        if failures > self._failures:
            self._failures = failures
            self._failed_pods = tuple(_pod_end(pod) for pod in snapshot.pods if pod.end)

    def report(self, pending: Sequence[reports.Report]) -> None:
        sent = [
            self._with_pods(report)
            for report in pending
            if not isinstance(report, Line) or report.role == "launcher"
        ]
        with suppress(OSError):  # the other end is gone: `orders` sees that too, and stops
            self._channel.sendall(reports.encode(sent))

    def _with_pods(self, report: reports.Report) -> reports.Report:
        if isinstance(report, reports.JobEnded) and report.state == conditions.FAILED:
            return msgspec.structs.replace(report, pods=self._failed_pods)
        return report


def _pod_end(pod: PodState) -> reports.PodEnd:
    return reports.PodEnd(pod.name, pod.role, pod.exit_code, pod.signal, pod.reason)
