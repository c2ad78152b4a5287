"""What Kubernetes, controllers and agents know of how a job's pods and ranks ended, which proves a
cause without anybody's words. Pure.
"""

from __future__ import annotations

import re
import signal as signals
from collections.abc import Iterator
from typing import Final

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds.pod_status import NOT_STARTED
from mpi_trainer.diagnose.evidence import Pod
from mpi_trainer.diagnose.finding import Facts, Hit
from mpi_trainer.diagnose.rules.ends import BY_SIGNAL
from mpi_trainer.diagnose.rules.kubernetes import BY_REASON, BY_START, BY_WAITING
from mpi_trainer.diagnose.rules.model import (
    EXITED,
    FOLLOWS,
    KILLED,
    LOST,
    PROOF,
    SIGNALLED,
    SPECIFIC,
    STARTUP,
)

ENDED_BY_MPI: Final = frozenset({"RankKilled", "RankTerminated"})
# More than that a rank ended, and less than what its program says.
_SEEN = SIGNALLED + 3
# What the reason of a failed job proves. Agents see who left or stands still, and not why.
_BY_VERDICT: Final = {
    "WorldsOfOne": ("MpiLibraryMismatch", PROOF),
    "DeadlineExceeded": ("TimeLimit", PROOF),
    "MPIJobEvicted": ("Evicted", PROOF),
    "Preempted": ("Preempted", PROOF),
    "SchedulingTimeout": ("NoNodeFits", PROOF),
    "InvalidImageName": ("ImagePullFailed", PROOF),
    "NoSsh": ("SshServerFailed", PROOF),
    # Shells say 126 and 127 of many things, and often which.
    "ProgramNotFound": ("ProgramNotFound", _SEEN),
    "WorkersMissing": ("WorkerUnreachable", _SEEN),
    "Unreachable": ("WorkerUnreachable", _SEEN),
    "WorkerLost": ("WorkerLost", _SEEN),
    "DaemonLost": ("WorkerLost", _SEEN),
    "DaemonFailed": ("MpiDaemonFailed", _SEEN),
    "RankLeft": ("RankExitedEarly", _SEEN),
    "RankStuck": ("NoProgress", _SEEN),
    "StartStuck": ("NoProgress", _SEEN),
    "MpirunStuck": ("NoProgress", _SEEN),
}
_ENDS = re.compile(
    r"Connections from ([a-z0-9][-a-z0-9.]{0,252}) to ([a-z0-9][-a-z0-9.]{0,252}) get no answer"
)
_NO_ANSWER = frozenset({"", "DeadlineExceeded", "SchedulingTimeout"})
_AWAITED = re.compile(
    r"mpi-agent: waiting for \d{1,9} of \d{1,9} workers: "
    r"(?P<host>[a-z0-9][-a-z0-9.]{0,252}) \((?P<why>[^)]{0,300})"
)
# The last words of ssh, which agents repeat.
_BY_SSH: Final = {
    "refused": "SshConnectionRefused",
    "Permission denied": "SshPermissionDenied",
    "resolve hostname": "NameResolution",
    "not known": "NameResolution",
    "name resolution": "NameResolution",
    "Host key": "SshHostKeyUnknown",
    "closed by": "SshConnectionClosed",
    "reset by": "SshConnectionClosed",
}
_NOT_EXECUTABLE = 126
# What controllers say of a pod that ended without having failed.
_GONE = re.compile(
    r"(?P<role>Worker|Launcher) (?P<host>[a-z0-9][-a-z0-9.]{0,252}) "
    r"(?P<how>was deleted|was running and is gone|ended with)"
)
# Which of several things was waited for is in the message.
_WAITED = frozenset({"SchedulingTimeout", "WorkersMissing"})
WHO: Final = re.compile(r"\b[Rr]ank (?P<rank>\d{1,7}) on (?P<host>[a-z0-9][-a-z0-9.]{0,252})")


def proofs(facts: Facts) -> Iterator[Hit]:
    """What Kubernetes and the agent know without reading anybody's words."""
    for pod in facts.pods:
        for reason, message in _reasons(pod):
            message = message[: bounds.MESSAGE]
            if reason in BY_REASON:
                told = BY_START if reason in NOT_STARTED else ()
                proved = next((name for words, name in told if words in message), BY_REASON[reason])
                line = f"{pod.name}: {reason}" + (f": {message}" if message else "")
                yield Hit(proved, PROOF, line[: bounds.MESSAGE], host=pod.name)
    for event in facts.events:
        cause = BY_REASON.get(event.reason) if event.type == "Warning" else None
        if "exceeded quota" in event.message[: bounds.MESSAGE]:
            cause = "QuotaExceeded"
        if cause is not None:
            line = f"{event.reason}: {event.message[: bounds.MESSAGE]}"
            yield Hit(cause, STARTUP, line, host=event.involved_object.name)
    yield from _verdict(facts)
    yield from _unanswered(facts)
    yield from _agent_proofs(facts)


def _reasons(pod: Pod) -> Iterator[tuple[str, str]]:
    """Why a pod was taken away, and why its containers wait or ended."""
    yield pod.status.reason, ""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        for state in (status.state, status.last_state):
            if state.terminated is not None:
                ended = state.terminated
                # Of a container that has run, the message is what its program wrote.
                yield ended.reason, ended.message if ended.reason in NOT_STARTED else ""
            if state.waiting is not None:
                yield state.waiting.reason, state.waiting.message
    taken = pod.condition("DisruptionTarget", "True")
    if taken is not None:
        yield taken.reason, taken.message


def _verdict(facts: Facts) -> Iterator[Hit]:
    cause, weight = _BY_VERDICT.get(facts.reason, ("", 0))
    message = facts.message[: bounds.MESSAGE]
    gone = _GONE.match(message)
    if gone is not None and not cause:
        ended = gone["how"] == "ended with"
        if not ended:
            yield Hit("PodDeleted", STARTUP, message, host=gone["host"])
        elif gone["role"] == "Worker":
            yield Hit("WorkerLost", _SEEN, message, host=gone["host"])
    elif cause:
        if facts.reason in _WAITED:
            told = (name for words, name in BY_WAITING if words in message)
            cause, weight = next(((name, PROOF) for name in told), (cause, weight))
        elif facts.reason == "RankStuck":
            cause = _of_exit(message.partition(" has failed (")[2]) or cause
        elif cause == "ProgramNotFound" and facts.exit_code == _NOT_EXECUTABLE:
            cause = "ProgramNotExecutable"
        rank, host = blamed(facts)
        yield Hit(cause, weight, message, rank=rank, host=host, despite_success=True)
        yield from _other_ends(facts, cause, weight)


def _other_ends(facts: Facts, cause: str, weight: int) -> Iterator[Hit]:
    """Where two hosts cannot reach each other, either may be at fault."""
    ends = _ENDS.match(facts.message[: bounds.MESSAGE])
    for host in ends.groups() if ends is not None else ():
        yield Hit(cause, weight, facts.message[: bounds.MESSAGE], host=host)


def _unanswered(facts: Facts) -> Iterator[Hit]:
    """A job that came no further than waiting for its workers, and has ended or stands for that."""
    found = _AWAITED.match(facts.awaited) if facts.reason in _NO_ANSWER else None
    if found is not None:
        told = (name for words, name in _BY_SSH.items() if words in found["why"])
        cause = next(told, "WorkerUnreachable")
        yield Hit(cause, PROOF + 1, facts.awaited, host=found["host"])


def blamed(facts: Facts) -> tuple[int | None, str]:
    """Whose fault it was, as the status says: by itself or in its message."""
    if facts.blamed_rank is not None or facts.blamed_host:
        return facts.blamed_rank, facts.blamed_host
    who = WHO.search(facts.message[: bounds.MESSAGE])
    return (int(who["rank"]), who["host"].rstrip(".")) if who else (None, "")


def _of_exit(text: str) -> str:
    """The cause of a rank that has called sys.exit, from the agent's words for how; else empty."""
    if not text.startswith("sys.exit("):
        return ""
    given = text.removeprefix("sys.exit(")
    return "ProgramReportedError" if given.startswith(("'", '"')) else "RankExitedNonZero"


def _agent_proofs(facts: Facts) -> Iterator[Hit]:
    summary = facts.summary
    first, _ = blamed(facts)
    one_began = any(bad.rank == first for bad in summary.bad)
    for raised in summary.raised:
        left = _of_exit(raised.what)
        cause, weight = (left, _SEEN) if left else ("ProgramException", SPECIFIC - 8)
        yield Hit(cause, weight, raised.what, rank=raised.rank, host=raised.pod)
    for bad in summary.bad:
        if bad.oom and bad.signal is not None:
            cause, weight = "OutOfMemory", PROOF
        elif bad.signal is not None:
            cause = BY_SIGNAL.get(bad.signal, "RankKilled")
            weight = KILLED if cause in ENDED_BY_MPI else SIGNALLED + 1
            if cause == "RankTerminated":
                weight = LOST - 1  # MPI ends ranks by this signal when anything is lost
        else:
            cause, weight = "RankExitedNonZero", EXITED + 1
        if one_began and bad.rank != first and weight != PROOF:
            weight = FOLLOWS
        line = f"rank {bad.rank} on {bad.pod}: {end_text(bad.signal, bad.status)}"
        hit = Hit(cause, weight, line, rank=bad.rank, host=bad.pod)
        hit.signal, hit.code = bad.signal, bad.status
        yield hit
    for lost in summary.down:
        yield Hit("WorkerLost", LOST + 4, f"{lost} does not answer", host=lost)
    if summary.foreign:
        yield Hit(
            "MpiLibraryMismatch",
            PROOF,
            "ranks were alone in a world of their own",
            despite_success=True,
        )


def end_text(signal: int | None, code: int | None) -> str:
    if signal is None and code is not None and 128 < code < 128 + 65 and code != 255:
        return f"exit code {code}, which is signal {code - 128} ({_signal_name(code - 128)})"
    if signal is not None:
        return f"signal {signal} ({_signal_name(signal)})"
    return {
        None: "its end was not seen",
        126: "exit code 126: the program may not be executed",
        127: "exit code 127: the program, or a library of it, was not found",
        255: "exit code 255: mpirun or ssh failed, or a rank left with a code",
    }.get(code, f"exit code {code}")


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return "unknown"
