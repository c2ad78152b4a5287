"""Why a job failed: from its output and all that else is known, findings in order. Pure.

    findings(log, facts) -> (Finding(cause="GpuOutOfMemory", ranks=(3,), ...), ...)

What is proved goes before what is read, a program's own words before MPI's, the first failure
before what followed from it. Nothing is found in a run that ended well, unless MPI says itself that
it lost something.
"""

from __future__ import annotations

import re
import signal as signals
from collections.abc import Iterable
from typing import Final

from mpi_trainer.api import bounds
from mpi_trainer.diagnose.finding import Confidence, Facts, Finding, Hit, replace
from mpi_trainer.diagnose.log_reader import ESCAPES, Log, LogReader
from mpi_trainer.diagnose.proofs import ENDED_BY_MPI, WHO, blamed, end_text, proofs
from mpi_trainer.diagnose.rank_hosts import RankHosts
from mpi_trainer.diagnose.rules import BOILERPLATE, CATALOGUE, NOISE, broader
from mpi_trainer.diagnose.rules.ends import BY_SIGNAL, NOT_FOR_MEMORY
from mpi_trainer.diagnose.rules.model import (
    BAD_TERMINATION,
    EXITED,
    FOLLOWS,
    HINT,
    KILLED,
    LOST,
    MPI_ERROR,
    SIGNALLED,
    STARTUP,
)

MOST: Final = 5
_LONGEST_LINE = 300
_MANY_QUIET_LINES = 200
_HANDLED = 50
_NEVER_SHOWN = (*BOILERPLATE, *NOISE)
# Seconds in which mpirun cannot have learnt from a daemon that a rank was told to end.
_AT_ONCE = 0.1
# What Hydra prints as an exit code where a signal has ended the rank.
_SMALL_SIGNALS = frozenset({4, 6, 7, 8, 9, 11, 15})
# Which host wrote a line of Hydra's proxies, or of Open MPI's library.
_WRITER = re.compile(
    r"(?:\[\d{10}\.\d{1,9}\] )?\[(?P<proxy>proxy:[\d:]{1,20}@)?"
    r"(?P<host>[A-Za-z0-9][-\w.]{0,252})(?P<thread>:\d{1,9} {0,4}:\d{1,9})?[:\]]"
)
# Which rank ended first is told by these, whatever the cause was.
_EPILOGUES = ("MpiAbort", "RankExitedNonZero", "RankExitedEarly", *BY_SIGNAL.values())
_OF_CALLS = ("MpiError", "MpiInitFailed")
# What ranks say that wait for one that is gone.
_LEFT_ALONE = frozenset({"CollectiveTimeout", "NcclError", "RendezvousFailed"})
_GONE = frozenset(
    {"RankArithmeticError", "RankBusError", "RankIllegalInstruction", "RankKilled", "RankSegfault"}
    | {"WorkerLost"}
)
# mpirun starts no rank before it has reached every worker, and who waits for workers asks again.
_ON_THE_WAY = frozenset(
    {"NameResolution", "WorkerUnreachable", *(name for name in CATALOGUE if name.startswith("Ssh"))}
)
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
    hits = [*proofs(facts), *(_resolved(hit) for hit in log.hits)]
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
    rank, host = blamed(facts)
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
    left_alone = _one_is_gone(weighed)
    ran = max((hit.number for hit in weighed if _of_a_running_rank(hit)), default=0)
    for hit in weighed:
        if 0 < hit.number < ran and hit.weight >= STARTUP - 3 and hit.cause in _ON_THE_WAY:
            hit.weight -= _HANDLED
        if left_alone and hit.cause in _LEFT_ALONE:
            hit.weight = min(hit.weight, FOLLOWS)
        if log.quiet - hit.quiet > _MANY_QUIET_LINES and hit.number:
            hit.weight = max(1, hit.weight - _HANDLED)
        # What daemons say themselves is more exact.
        unsaid = hit.cause == "MpiDaemonFailed" and (not hit.number or hit.weight <= HINT)
        if unsaid and (log.hosts or hit.quiet >= 3):
            hit.cause, hit.weight = "WorkerLost", LOST
    ended = {hit.cause for hit in weighed if hit.weight >= EXITED}
    told = {(hit.host, hit.rank) for hit in weighed if hit.signal == 15 or hit.code in (15, 143)}
    at_once = facts.seconds is not None and facts.seconds < _AT_ONCE
    one_began = blamed(facts)[0] is not None
    if ended == {"RankTerminated"} and not one_began and (len(told) > 1 or at_once):
        for hit in weighed:
            if hit.cause == "RankTerminated":
                hit.cause, hit.rank, hit.host = "LauncherTerminated", None, ""
    return weighed


def _one_is_gone(hits: list[Hit]) -> bool:
    """Whether a rank or a worker ended without a word. Who gives up waiting aborts itself, and is
    then the first whom MPI sees end."""
    gone = any(
        hit.cause in _GONE and hit.weight >= LOST and (hit.rank is not None or hit.host)
        for hit in hits
        if not hit.by_rank
    )
    return gone and not any(hit.cause == "RankAborted" and hit.weight >= SIGNALLED for hit in hits)


def _of_a_running_rank(hit: Hit) -> bool:
    """Whether it shows that ranks had started; Hydra ends those of hosts that it has reached."""
    if hit.by_rank:
        return "ProgramException" in broader(hit.cause)
    return hit.rank is not None and hit.cause in _EPILOGUES and hit.cause not in ENDED_BY_MPI


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
        hit.weight = KILLED if hit.cause in ENDED_BY_MPI else SIGNALLED
        hit.signal = number
    return hit


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
        if name in ENDED_BY_MPI:  # who ends all for that has only lost the one to blame
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
    who = WHO.search(facts.message[: bounds.MESSAGE])
    if who is not None and not ranks and not hosts:
        ranks, hosts = (int(who["rank"]),), (who["host"].rstrip("."),)
    cause = CATALOGUE[name]
    last = next((line for line in map(_shown, (log.told, *reversed(log.last))) if line), "")
    means = end_text(facts.signal, facts.exit_code) if facts.ended else "it was still running"
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
