"""Runs one job in the foreground: forks its supervisor and follows it to the end.

The supervisor is in a session of its own, so a Ctrl-C reaches only this process, which asks it
to stop; a second one kills. When this process dies, the supervisor sees the socket close and
cleans up; when the supervisor dies, the kernel ends the pods and this process says so.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import msgspec

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.layout.model import Layout
from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.execute import reports
from mpi_trainer.local.execute.initializers import Fetch, fetch_all
from mpi_trainer.local.execute.plan import Machine
from mpi_trainer.local.execute.supervisor import Supervisor
from mpi_trainer.local.execute.supervisor_client import TerminalClient
from mpi_trainer.local.pods import cgroups
from mpi_trainer.local.pods.isolation import Isolation
from mpi_trainer.local.pods.loopback import Loopback
from mpi_trainer.local.pods.pod import PodHost
from mpi_trainer.local.pods.sandbox import Sandbox

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class RunPlan(msgspec.Struct, frozen=True):
    """Everything that is needed to run a job here."""

    job: MPIJob
    layout: Layout
    machine: Machine
    isolation: Isolation
    shared_dirs: tuple[str, ...]
    fetches: tuple[Fetch, ...] = ()


def run(plan: RunPlan, on_report: Callable[[reports.Report], None]) -> reports.JobEnded:
    """Runs the job; `on_report` gets every report before the last. LocalError where it cannot."""
    if plan.job.spec.run_policy.suspend:
        raise LocalError(
            f"job {plan.job.name} is suspended, so nothing would run",
            "Set spec.runPolicy.suspend to false.",
        )
    ours, theirs = socket.socketpair()
    sys.stdout.flush()
    sys.stderr.flush()
    # A signal waits until each of the two knows what to do with it.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    child = os.fork()
    if child == 0:
        _supervise(plan, theirs, ours)
    theirs.close()
    try:
        with _forwarded_signals(ours):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            last = _follow(ours, on_report)
    finally:
        ours.close()
        os.waitpid(child, 0)
        cgroups.sweep()
    if isinstance(last, reports.CannotRun):
        raise LocalError(last.problem, last.hint)
    return last


def _follow(
    channel: socket.socket, on_report: Callable[[reports.Report], None]
) -> reports.JobEnded | reports.CannotRun:
    with channel.makefile("rb") as lines:
        for line in lines:
            if not line.endswith(b"\n"):
                break  # torn, by what killed the supervisor
            report = reports.decode(line)
            if isinstance(report, (reports.JobEnded, reports.CannotRun)):
                return report
            on_report(report)
    return reports.JobEnded(
        state="Failed",
        reason="SupervisorLost",
        message="The process that held the job was killed; its pods ended with it.",
        ranks=(),
        seconds=0.0,
    )


@contextmanager
def _forwarded_signals(channel: socket.socket) -> Iterator[None]:
    """A first signal asks the supervisor to stop the job, a second one to kill it."""
    received = 0

    def forward(number: int, frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        with suppress(OSError):
            channel.send(reports.STOP if received == 1 else reports.KILL)

    before = {s: signal.signal(s, forward) for s in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _supervise(plan: RunPlan, channel: socket.socket, parents: socket.socket) -> None:
    """The child's whole life. Never returns."""
    host: PodHost | None = None
    broken: reports.CannotRun | None = None
    try:
        parents.close()
        stdin = _standard_input()
        os.setsid()
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        client = TerminalClient(channel)
        if not fetch_all(plan.fetches, client):
            raise LocalError("stopped while data was fetched", "What came is kept: run it again.")
        host = pod_host(plan)
        supervisor = Supervisor(plan.job, plan.layout, plan.machine, host, stdin)
        supervisor.run(client)
    except LocalError as error:
        broken = reports.CannotRun(error.problem, error.hint)
    except BaseException:
        broken = reports.CannotRun(
            f"this is a fault of mpi-trainer, not of the job:\n{traceback.format_exc()}",
            "Please report it with the job file and the lines above.",
        )
    with suppress(BaseException):
        if broken is not None:
            channel.sendall(reports.encode([broken]))
        if host is not None:
            host.close()
    os._exit(0 if broken is None else 1)


def _standard_input() -> int | None:
    """Ours, for the launcher. None where there is none, or where it is a terminal that another
    command reads from, as when this one was started with `&`."""
    try:
        if os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp():
            return None
        return os.dup(0)
    except OSError:
        return None


def pod_host(plan: RunPlan) -> PodHost:
    name = f"{plan.job.namespace}-{plan.job.name}"
    kind = Loopback if plan.isolation.kind == "loopback" else Sandbox
    return kind.enter(plan.isolation, name, plan.shared_dirs)
