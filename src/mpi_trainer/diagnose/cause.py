"""Why a job failed: from its output and all that else is known, findings in order. Pure.

    findings(log, facts) -> (Finding(cause="GpuOutOfMemory", ranks=(3,), ...), ...)

What is proved goes before what is read, a program's own words before MPI's, the first failure
before what followed from it. Nothing is found in a run that ended well, unless MPI says itself that
it lost something.
"""

from __future__ import annotations

import re
import signal as signals
from collections.abc import Iterable, Iterator
from typing import Final

from mpi_trainer.api import bounds
from mpi_trainer.diagnose.evidence import Pod
from mpi_trainer.diagnose.finding import Confidence, Facts, Finding, Hit
from mpi_trainer.diagnose.log_reader import Log, LogReader
from mpi_trainer.diagnose.rank_hosts import RankHosts
from mpi_trainer.diagnose.rules import BOILERPLATE, CATALOGUE, NOISE, broader
from mpi_trainer.diagnose.rules.ends import BY_SIGNAL
from mpi_trainer.diagnose.rules.kubernetes import BY_REASON
from mpi_trainer.diagnose.rules.model import (
    BAD_TERMINATION,
    EXITED,
    FOLLOWS,
    HINT,
    KILLED,
    LOST,
    MPI_ERROR,
    PROOF,
    SIGNALLED,
    SPECIFIC,
    STARTUP,
)

MOST: Final = 5
_LONGEST_LINE = 300
_MANY_QUIET_LINES = 200
_HANDLED = 50
# More than that a rank ended, and less than what its program says.
_SEEN = SIGNALLED + 3
_NEVER_SHOWN = (*BOILERPLATE, *NOISE)
# Seconds in which mpirun cannot have learnt from a daemon that a rank was told to end.
_AT_ONCE = 0.1
# What the reason of a failed job proves. Agents see who left or stands still, and not why.
_BY_VERDICT: Final = {
    "WorldsOfOne": ("MpiLibraryMismatch", PROOF),
    "DeadlineExceeded": ("TimeLimit", PROOF),
    "MPIJobEvicted": ("Evicted", PROOF),
    "SchedulingTimeout": ("NoNodeFits", PROOF),
    "InvalidImageName": ("ImagePullFailed", PROOF),
    "NoSsh": ("SshServerFailed", PROOF),
    "ProgramNotFound": ("ProgramNotFound", STARTUP),
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
_WHO = re.compile(r"\b[Rr]ank (?P<rank>\d{1,7}) on (?P<host>[a-z0-9][-a-z0-9.]{0,252})")
# What Hydra prints as an exit code where a signal has ended the rank.
_SMALL_SIGNALS = frozenset({4, 6, 7, 8, 9, 11, 15})
_ENDED_BY_MPI = frozenset({"RankKilled", "RankTerminated"})
# Which rank ended first is told by these, whatever the cause was.
_EPILOGUES = ("MpiAbort", "RankExitedNonZero", "RankExitedEarly", *BY_SIGNAL.values())
# Before any rank starts, none is to blame.
_BEFORE_RANKS = frozenset(
    name
    for name in CATALOGUE
    if name.startswith(("Ssh", "Hostfile", "Launcher", "RunAs", "NotEnough"))
)


def concluded(reader: LogReader, facts: Facts) -> tuple[Finding, ...]:
    """What `reader` has read and everything else that is known, as findings: the one conclusion
    that controller, local backend, SDK and CLI draw."""
    # Hydra may lose a rank's last line; the agent has read it, and the status quotes it.
    reader.read_line(facts.message)
    found = findings(reader.close(), facts)
    # Nothing is wrong with a job that runs and has said nothing of a failure.
    silent = not facts.ended and not facts.reason and found and found[0].confidence == "possible"
    return () if silent else found


def findings(log: Log, facts: Facts) -> tuple[Finding, ...]:
    """The most likely cause first; empty where nothing failed."""
    well = facts.ended and facts.exit_code == 0
    hits = [*_proofs(facts), *(_resolved(hit) for hit in log.hits)]
    if well:
        hits = [hit for hit in hits if hit.despite_success]
    hits = _weighed(hits, log, facts)
    if not hits and not well:
        return (_unexplained(log, facts),)
    if not hits:
        return ()
    groups: dict[str, list[Hit]] = {}
    for hit in sorted(hits, key=lambda hit: (-hit.weight, hit.number)):
        groups.setdefault(hit.cause, []).append(hit)
    ordered = list(groups.items())
    first_name, first = ordered[0]
    if all(hit.weight < HINT - 1 for hit in first) and not any(h.host for h in first):
        return (_unexplained(log, facts, first),)
    made = [_finding(first_name, first, hits, log, others=ordered[1:])]
    made += [
        _finding(name, of, hits, log, others=())
        for name, of in ordered[1:]
        if of[0].weight >= MPI_ERROR and name not in broader(first_name)
    ]
    return tuple(made[:MOST])


def _weighed(hits: Iterable[Hit], log: Log, facts: Facts) -> list[Hit]:
    """What was overcome weighs less; several things that happen together mean another one."""
    weighed = list(hits)
    for hit in weighed:
        if log.quiet - hit.quiet > _MANY_QUIET_LINES and hit.number:
            hit.weight = max(1, hit.weight - _HANDLED)
        if hit.cause == "MpiDaemonFailed" and (log.hosts or hit.quiet >= 3):
            hit.cause, hit.weight = "WorkerLost", LOST
    ended = {hit.cause for hit in weighed if hit.weight >= EXITED}
    told = {(hit.host, hit.rank) for hit in weighed if hit.signal == 15 or hit.code in (15, 143)}
    at_once = facts.seconds is not None and facts.seconds < _AT_ONCE
    if ended == {"RankTerminated"} and (len(told) > 1 or at_once):
        for hit in weighed:
            if hit.cause == "RankTerminated":
                hit.cause, hit.rank, hit.host = "LauncherTerminated", None, ""
    return weighed


def _resolved(hit: Hit) -> Hit:
    """A bad termination as the cause that its signal or exit code means."""
    if hit.cause != BAD_TERMINATION:
        return hit
    number = hit.signal
    if number is None and hit.code is not None:
        small = hit.code - 128 if hit.code > 128 else hit.code
        number = small if small in _SMALL_SIGNALS else None
    if number is None:
        hit.cause, hit.weight = "RankExitedNonZero", EXITED
    else:
        hit.cause = BY_SIGNAL.get(number, "RankKilled")
        hit.weight = KILLED if hit.cause in _ENDED_BY_MPI else SIGNALLED
        hit.signal = number
    return hit


# --- proofs --------------------------------------------------------------------------------------


def _proofs(facts: Facts) -> Iterator[Hit]:
    """What Kubernetes and the agent know without reading anybody's words."""
    for pod in facts.pods:
        for reason, message in _reasons(pod):
            if reason in BY_REASON:
                line = f"{pod.name}: {reason}" + (f": {message}" if message else "")
                yield Hit(BY_REASON[reason], PROOF, line[: bounds.MESSAGE], host=pod.name)
    for event in facts.events:
        cause = BY_REASON.get(event.reason) if event.type == "Warning" else None
        if "exceeded quota" in event.message[: bounds.MESSAGE]:
            cause = "QuotaExceeded"
        if cause is not None:
            line = f"{event.reason}: {event.message[: bounds.MESSAGE]}"
            yield Hit(cause, STARTUP, line, host=event.involved_object.name)
    yield from _verdict(facts)
    yield from _agent_proofs(facts)


def _reasons(pod: Pod) -> Iterator[tuple[str, str]]:
    """Why a pod was taken away, and why its containers wait or ended."""
    yield pod.status.reason, ""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        for state in (status.state, status.last_state):
            if state.terminated is not None:
                yield state.terminated.reason, ""
            if state.waiting is not None:
                yield state.waiting.reason, state.waiting.message
    taken = pod.condition("DisruptionTarget", "True")
    if taken is not None:
        yield taken.reason, taken.message


def _verdict(facts: Facts) -> Iterator[Hit]:
    cause, weight = _BY_VERDICT.get(facts.reason, ("", 0))
    if cause:
        message = facts.message[: bounds.MESSAGE]
        who = _WHO.search(message)
        rank, host = (int(who["rank"]), who["host"].rstrip(".")) if who else (None, "")
        yield Hit(cause, weight, message, rank=rank, host=host, despite_success=True)


def _agent_proofs(facts: Facts) -> Iterator[Hit]:
    summary = facts.summary
    for raised in summary.raised:
        yield Hit("ProgramException", SPECIFIC - 8, raised.what, rank=raised.rank, host=raised.pod)
    for bad in summary.bad:
        if bad.oom and bad.signal is not None:
            cause, weight = "OutOfMemory", PROOF
        elif bad.signal is not None:
            cause = BY_SIGNAL.get(bad.signal, "RankKilled")
            weight = KILLED if cause in _ENDED_BY_MPI else SIGNALLED + 1
        else:
            cause, weight = "RankExitedNonZero", EXITED + 1
        line = f"rank {bad.rank} on {bad.pod}: {_end(bad.signal, bad.status)}"
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


# --- findings ------------------------------------------------------------------------------------


def _finding(
    name: str, hits: list[Hit], every: list[Hit], log: Log, others: Iterable[tuple[str, list[Hit]]]
) -> Finding:
    best = hits[0]
    cause = CATALOGUE[name]
    ranks, hosts = _where(name, hits, every, log.hosts)
    return Finding(
        cause=name,
        confidence=_confidence(best),
        title=cause.title,
        remedy=cause.remedy,
        ranks=ranks,
        hosts=hosts,
        line=next((line for hit in hits if (line := _shown(hit.line))), ""),
        instead=best.instead,
        followed=tuple(line for _, of in others if (line := _shown(of[0].line)))[:MOST],
    )


def _confidence(hit: Hit) -> Confidence:
    if hit.weight >= STARTUP:
        return "certain"
    return "likely" if hit.weight > FOLLOWS else "possible"


def _shown(text: str) -> str:
    """The line that says most: the first that is no boilerplate."""
    for line in text.split("\n"):
        if line.strip(" -=") and not any(said in line for said in _NEVER_SHOWN):
            return " ".join(line.split())[:_LONGEST_LINE]
    return ""


def _where(
    name: str, hits: list[Hit], every: list[Hit], known: RankHosts
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    in_order = sorted(hits, key=lambda hit: (-hit.weight, hit.number))
    ranks = dict.fromkeys(hit.rank for hit in in_order if hit.rank is not None)
    hosts = dict.fromkeys(hit.host for hit in in_order if hit.host)
    if not ranks and not hosts and name not in _BEFORE_RANKS:
        told = (hit for hit in every if hit.cause in _EPILOGUES and hit.cause != name)
        ended = next((hit for hit in sorted(told, key=_told_first) if _names(hit)), None)
        if ended is not None:
            ranks = dict.fromkeys([] if ended.rank is None else [ended.rank])
            hosts = dict.fromkeys([ended.host] if ended.host else [])
    if not ranks and name not in _BEFORE_RANKS:
        ranks = dict.fromkeys(rank for host in hosts for rank in known.ranks(host))
    if not hosts:
        hosts = dict.fromkeys(host for rank in ranks if (host := known.host(rank)))
    return tuple(ranks), tuple(hosts)


def _told_first(hit: Hit) -> tuple[int, int]:
    return -hit.weight, hit.number


def _names(hit: Hit) -> bool:
    return hit.rank is not None or bool(hit.host)


def _unexplained(log: Log, facts: Facts, hints: Iterable[Hit] = ()) -> Finding:
    """No rule found anything: what the end itself says."""
    name = _by_end(log, facts)
    ranks, hosts = _where(name, list(hints), list(hints), log.hosts)
    who = _WHO.search(facts.message[: bounds.MESSAGE])
    if who is not None and not ranks and not hosts:
        ranks, hosts = (int(who["rank"]),), (who["host"].rstrip("."),)
    cause = CATALOGUE[name]
    last = next((line for line in map(_shown, reversed(log.last)) if line), "")
    means = _end(facts.signal, facts.exit_code) if facts.ended else "it was still running"
    return Finding(
        cause=name,
        confidence="possible" if name != "LauncherKilled" else "likely",
        title=f"{cause.title} ({means})",
        remedy=cause.remedy,
        ranks=ranks,
        hosts=hosts,
        line=last,
    )


def _by_end(log: Log, facts: Facts) -> str:
    if not facts.ended:
        # Ranks on several hosts may also be unable to reach each other.
        alone = log.hosts.complete and not log.hosts and log.said <= log.hosts.size
        return "RankExitedEarly" if alone else "NoProgress"
    if facts.signal == signals.SIGKILL or facts.exit_code == 128 + signals.SIGKILL:
        return "LauncherKilled"
    if facts.signal is not None or facts.exit_code == 128 + signals.SIGTERM:
        return "LauncherTerminated"
    if not log.hosts:
        return "UnknownFailure"
    # Open MPI names whoever failed, and leaves with 1 where it was stopped itself. Hydra says
    # nothing of a rank that left with a code, and leaves with 255.
    return "LauncherTerminated" if facts.exit_code == 1 else "RankExitedNonZero"


def _end(signal: int | None, code: int | None) -> str:
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
