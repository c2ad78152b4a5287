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
from mpi_trainer.diagnose.finding import Confidence, Facts, Finding, Hit, replace
from mpi_trainer.diagnose.log_reader import ESCAPES, Log, LogReader
from mpi_trainer.diagnose.rank_hosts import RankHosts
from mpi_trainer.diagnose.rules import BOILERPLATE, CATALOGUE, NOISE, broader
from mpi_trainer.diagnose.rules.ends import BY_SIGNAL, NOT_FOR_MEMORY
from mpi_trainer.diagnose.rules.kubernetes import BY_REASON, BY_WAITING
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
}
_NOT_EXECUTABLE = 126
# What controllers say of a pod that ended without having failed.
_GONE = re.compile(
    r"(?P<role>Worker|Launcher) (?P<host>[a-z0-9][-a-z0-9.]{0,252}) "
    r"(?P<how>was deleted|was running and is gone|ended with)"
)
# Which of several things was waited for is in the message.
_WAITED = frozenset({"SchedulingTimeout", "WorkersMissing"})
_WHO = re.compile(r"\b[Rr]ank (?P<rank>\d{1,7}) on (?P<host>[a-z0-9][-a-z0-9.]{0,252})")
# What Hydra prints as an exit code where a signal has ended the rank.
_SMALL_SIGNALS = frozenset({4, 6, 7, 8, 9, 11, 15})
_ENDED_BY_MPI = frozenset({"RankKilled", "RankTerminated"})
# Which host wrote a line of Hydra's proxies, or of Open MPI's library.
_WRITER = re.compile(
    r"(?:\[\d{10}\.\d{1,9}\] )?\[(?P<proxy>proxy:[\d:]{1,20}@)?"
    r"(?P<host>[A-Za-z0-9][-\w.]{0,252})(?P<thread>:\d{1,9} {0,4}:\d{1,9})?[:\]]"
)
# Which rank ended first is told by these, whatever the cause was.
_EPILOGUES = ("MpiAbort", "RankExitedNonZero", "RankExitedEarly", *BY_SIGNAL.values())
_OF_CALLS = ("MpiError", "MpiInitFailed")
# By these mpirun names a host that ssh, whose words come from there, did not name.
_UNREACHED = ("A daemon failed to report back", "[mpiexec@")
# Before any rank starts, and where somebody ends all of them, none is to blame.
_OF_NO_RANK = frozenset(
    name
    for name in CATALOGUE
    if name.startswith(("Ssh", "Hostfile", "Launcher", "RunAs", "NotEnough", "TimeLimit"))
)


def concluded(reader: LogReader, facts: Facts) -> tuple[Finding, ...]:
    """What `reader` has read and everything else that is known, as findings: the one conclusion
    that controller, local backend, SDK and CLI draw."""
    facts = replace(facts, awaited=reader.awaited)
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
        hits = [hit for hit in hits if hit.despite_success and not hit.by_rank]
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
    found = _with_blame(_finding(first_name, first, hits, log, others=ordered[1:]), facts)
    made = [_of_memory(found, facts)]
    made += [
        _finding(name, of, hits, log, others=())
        for name, of in ordered[1:]
        if of[0].weight >= MPI_ERROR and name not in broader(first_name)
    ]
    return tuple(made[:MOST])


def _with_blame(finding: Finding, facts: Facts) -> Finding:
    """With whom the status blames, where nothing that was read says who it was."""
    if finding.ranks or finding.hosts or finding.cause in _OF_NO_RANK:
        return finding
    rank, host = _blamed(facts)
    ranks = () if rank is None else (rank,)
    return replace(finding, ranks=ranks, hosts=(host,) if host else ())


def _of_memory(finding: Finding, facts: Facts) -> Finding:
    """A rank that was killed where the kernel counts what it kills for memory, and has killed
    nothing: whoever reads of memory then looks in the wrong place. Danger: counts of a host are
    some seconds old, and only those with a rank's own end are not."""
    counts = {host.pod for host in facts.summary.hosts if host.oom == 0}
    spared = {bad.rank for bad in facts.summary.bad if bad.pod in counts and not bad.oom}
    if finding.cause != "RankKilled" or not spared.issuperset(finding.ranks or (-1,)):
        return finding
    return replace(finding, remedy=NOT_FOR_MEMORY)


def _weighed(hits: Iterable[Hit], log: Log, facts: Facts) -> list[Hit]:
    """What was overcome weighs less; several things that happen together mean another one."""
    weighed = list(hits)
    for hit in weighed:
        if log.quiet - hit.quiet > _MANY_QUIET_LINES and hit.number:
            hit.weight = max(1, hit.weight - _HANDLED)
        unsaid = hit.cause == "MpiDaemonFailed" and hit.weight <= HINT
        if unsaid and (log.hosts or hit.quiet >= 3):
            hit.cause, hit.weight = "WorkerLost", LOST
    ended = {hit.cause for hit in weighed if hit.weight >= EXITED}
    told = {(hit.host, hit.rank) for hit in weighed if hit.signal == 15 or hit.code in (15, 143)}
    at_once = facts.seconds is not None and facts.seconds < _AT_ONCE
    one_began = _blamed(facts)[0] is not None
    if ended == {"RankTerminated"} and not one_began and (len(told) > 1 or at_once):
        for hit in weighed:
            if hit.cause == "RankTerminated":
                hit.cause, hit.rank, hit.host = "LauncherTerminated", None, ""
    return weighed


def _resolved(hit: Hit) -> Hit:
    """A bad termination as the cause that its signal or exit code means."""
    if hit.cause != BAD_TERMINATION:
        return hit
    number = hit.signal
    if None not in (number, hit.code) and hit.code not in (number, 128 + (number or 0)):
        number = None  # of another rank
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
    yield from _unanswered(facts)
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
        rank, host = _blamed(facts)
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


def _blamed(facts: Facts) -> tuple[int | None, str]:
    """Whose fault it was, as the status says: by itself or in its message."""
    if facts.blamed_rank is not None or facts.blamed_host:
        return facts.blamed_rank, facts.blamed_host
    who = _WHO.search(facts.message[: bounds.MESSAGE])
    return (int(who["rank"]), who["host"].rstrip(".")) if who else (None, "")


def _of_exit(text: str) -> str:
    """The cause of a rank that has called sys.exit, from the agent's words for how; else empty."""
    if not text.startswith("sys.exit("):
        return ""
    given = text.removeprefix("sys.exit(")
    return "ProgramReportedError" if given.startswith(("'", '"')) else "RankExitedNonZero"


def _agent_proofs(facts: Facts) -> Iterator[Hit]:
    summary = facts.summary
    first, _ = _blamed(facts)
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
            weight = KILLED if cause in _ENDED_BY_MPI else SIGNALLED + 1
            if cause == "RankTerminated":
                weight = LOST - 1  # MPI ends ranks by this signal when anything is lost
        else:
            cause, weight = "RankExitedNonZero", EXITED + 1
        if one_began and bad.rank != first and weight != PROOF:
            weight = FOLLOWS
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
    """The line that says most: the first that is no boilerplate. Nothing in it moves a terminal's
    cursor, changes its title or turns text around."""
    for line in text.split("\n"):
        if line.strip(" -=") and not any(said in line for said in _NEVER_SHOWN):
            words = " ".join(ESCAPES.sub("", line).split())[:_LONGEST_LINE]
            return "".join(letter for letter in words if letter.isprintable())
    return ""


def _where(
    name: str, hits: list[Hit], every: list[Hit], known: RankHosts
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    in_order = sorted(hits, key=lambda hit: (-hit.weight, hit.number))
    ranks = dict.fromkeys(hit.rank for hit in in_order if hit.rank is not None)
    hosts = dict.fromkeys(hit.host for hit in in_order if hit.host)
    if not ranks and not hosts and name not in _OF_NO_RANK:
        # What is proved has no number of a line; agents name who failed, MPI who ended.
        others = [hit for hit in every if hit.cause != name and _names(hit)]
        told = [hit for hit in others if hit.cause in _EPILOGUES or not hit.number]
        told = told or [hit for hit in others if hit.cause in _OF_CALLS]
        if name in _ENDED_BY_MPI:  # who ends all for that has only lost the one to blame
            told = [hit for hit in told if hit.weight >= HINT or not hit.number]
        ended = min(told, key=_told_first, default=None)
        if ended is not None:
            ranks = dict.fromkeys([] if ended.rank is None else [ended.rank])
            hosts = dict.fromkeys([ended.host] if ended.host else [])
    if not ranks and not hosts and name not in _OF_NO_RANK:
        wrote = (_writer(hit.line, known) for hit in in_order if hit.weight > FOLLOWS)
        hosts = dict.fromkeys(filter(None, wrote))
    if not ranks and name not in _OF_NO_RANK:
        ranks = dict.fromkeys(rank for host in hosts for rank in known.ranks(host))
    if not hosts:
        hosts = dict.fromkeys(host for rank in ranks if (host := known.host(rank)))
    if not hosts and not ranks:
        hosts = dict.fromkeys(hit.host for hit in every if hit.host and _of_same(hit, name))
    # A host is named once, whether with its domain or without.
    hosts = dict.fromkeys(map(_pod_of, hosts))
    once = (
        host for host in hosts if (short := host.partition(".")[0]) == host or short not in hosts
    )
    return tuple(ranks), tuple(once)


def _of_same(hit: Hit, name: str) -> bool:
    """Whether the host that the hit names is also that of a cause which is told without one."""
    unreached = name not in _OF_NO_RANK or name.startswith("Ssh")
    alike = name in broader(hit.cause) or hit.cause in broader(name)
    return alike or (unreached and hit.line.startswith(_UNREACHED))


def _writer(line: str, known: RankHosts) -> str:
    """The host that a line of Hydra's proxies, UCX or Open MPI says it is from; mpirun's own is
    none of those that ranks are on."""
    found = _WRITER.match(line)
    if found is None or not (found["proxy"] or found["thread"] or known.ranks(found["host"])):
        return ""
    return found["host"]


def _pod_of(host: str) -> str:
    """The pod that a cluster's DNS knows by this name."""
    return host.partition(".")[0] if host.endswith(".svc") or ".svc." in host else host


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
    last = next((line for line in map(_shown, (log.told, *reversed(log.last))) if line), "")
    means = _end(facts.signal, facts.exit_code) if facts.ended else "it was still running"
    return Finding(
        cause=name,
        confidence="possible" if name != "LauncherKilled" else "likely",
        title=f"{cause.title} ({means})",
        remedy=cause.remedy,
        ranks=ranks,
        hosts=hosts,
        line=last,
        # Who leaves without MPI_Finalize says nothing, and the others wait for ever.
        instead="RankExitedEarly" if name == "NoProgress" and log.hosts.complete else "",
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
