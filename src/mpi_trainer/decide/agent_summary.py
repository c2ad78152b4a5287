"""What the agent's summary proves, in the terms of `Observed`: how ranks ended, and the launcher.

Used by every executor, so that the same summary means the same everywhere.
"""

from __future__ import annotations

import signal

from msgspec.structs import replace

from mpi_trainer.api.kinds import pod_status
from mpi_trainer.decide import reasons
from mpi_trainer.decide.observed import End, ObservedRank
from mpi_trainer.layout.agent.launcher_log import Abort, LoggedCause, NoProgram, NoScript, PeerLost
from mpi_trainer.layout.agent.summary import BadRank, Cause, Summary

# What the agent says where it saw ranks go and not why. A rank that it names as the cause stays so:
# ranks that lose another print the same line.
_UNEXPLAINED = frozenset({"RanksLost", "CommandFailed"})
# mpirun ends its daemons when a program is missing, and one may look lost to the agent.
_FOLLOWS = _UNEXPLAINED | {"StartFailed", "DaemonLost", "DaemonFailed", "ConnectionLost"}


def observed_ranks(summary: Summary, attempt: int) -> tuple[ObservedRank, ...]:
    """Every rank that the summary names, in order of rank; none where it names none."""
    unseen = {rank for group in (*summary.lost, *summary.open) for rank in group.ranks}
    foreign = {rank for group in summary.foreign for rank in group.ranks}
    bad = {b.rank: (order, b) for order, b in enumerate(summary.bad)}
    found = {}
    for host in (*summary.hosts, *summary.lost, *summary.open):
        for rank in host.ranks:
            observed = ObservedRank(rank=rank, size=summary.size, pod=host.pod, attempt=attempt)
            if rank not in unseen:
                observed = replace(observed, end=End(code=0), ended=float(len(bad)))
            found[rank] = replace(observed, foreign=rank in foreign)
    for rank, (order, b) in bad.items():
        observed = ObservedRank(rank, summary.size, b.pod, attempt, b.pid, _end(b), float(order))
        found[rank] = replace(observed, foreign=rank in foreign)
    return tuple(observed for _, observed in sorted(found.items()))


def launcher_end(given: End, summary: Summary) -> End:
    """The launcher's end with the agent's reason and words in place of the raw summary."""
    if not summary:
        return given
    reason = summary.verdict if summary.verdict in reasons.OF_AGENT else given.reason
    none = not (summary.hosts or summary.bad or summary.lost or summary.open)
    words = summary.text or _raised(summary)
    return replace(given, reason=reason, message=words, unstarted=none)


def with_logged_cause(summary: Summary, logged: LoggedCause | None) -> Summary:
    """The summary with the cause that the log names, where the agent saw none or a victim."""
    cause = summary.cause
    if logged is None or cause is None:
        return summary
    if isinstance(logged, PeerLost):
        return _without_victim(summary, cause, logged.rank)
    if isinstance(logged, NoScript):
        return summary if summary.verdict or summary.text else replace(summary, text=logged.said)
    if cause.rank is not None:
        return summary
    if cause.reason not in (_FOLLOWS if isinstance(logged, NoProgram) else _UNEXPLAINED):
        return summary
    found, text = _cause_and_text(summary, logged)
    return replace(summary, cause=found, text=text)


def _without_victim(summary: Summary, cause: Cause, victim: int) -> Summary:
    """A rank that lost another is not the cause where one was killed: its end may be seen first."""
    killed = next((b for b in summary.bad if b.signal == signal.SIGTERM), None)
    if (cause.reason, cause.rank) != ("RankFailed", victim) or killed is None:
        return summary
    who = f"rank {killed.rank} on {killed.pod} was ended by signal 15 (SIGTERM)"
    found = Cause("RankKilled", killed.rank, killed.pod)
    return replace(summary, cause=found, text=f"{who}, and rank {victim} has lost it")


def _cause_and_text(summary: Summary, logged: Abort | NoProgram) -> tuple[Cause, str]:
    match logged:
        case Abort(rank, code):
            pod = next((host.pod for host in summary.hosts if rank in host.ranks), "")
            who = f"rank {rank}" + (f" on {pod}" if pod else "")
            return Cause("RankFailed", rank, pod), f"{who} has ended all ranks by MPI_Abort({code})"
        case NoProgram(program, pod):
            return Cause("StartFailed", None, pod), f"{pod} has no {program} that it could run"


def _raised(summary: Summary) -> str:
    """What the first rank that failed in Python said."""
    if not summary.raised:
        return ""
    order = {b.rank: n for n, b in enumerate(summary.bad)}
    first = min(summary.raised, key=lambda r: order.get(r.rank, len(order)))
    return f"rank {first.rank} on {first.pod} raised {first.what}" + (
        f" at {first.where}" if first.where else ""
    )


def _end(bad: BadRank) -> End:
    killed = bad.oom and bad.signal is not None
    return End(code=bad.status, signal=bad.signal, reason=pod_status.OOM_KILLED if killed else "")
