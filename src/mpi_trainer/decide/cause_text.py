"""The cause of a failure, as sentences: the same for jobs of every kind."""

from __future__ import annotations

import signal

from mpi_trainer.decide.observed import End, Observed, ObservedPod, ObservedRank

# What a program says is cut to what a status or a record has room for.
LONGEST_DETAIL = 512


def agent_verdict(end: End) -> str:
    """The agent's words as a sentence; how the launcher ended says nothing, since it was ended."""
    words = end.message[:LONGEST_DETAIL] or end.reason
    return f"{words[0].upper()}{words[1:]}; so the agent has ended the launcher."


def first_failed_rank(observed: Observed, said: str = "") -> str:
    """The rank that ended badly before the others, which mpirun then took down.

    Empty where `said` names one already, or another worker: SIGTERM is what mpirun sends to those
    that are left.
    """
    bad = [
        rank
        for rank in observed.ranks
        if rank.attempt == observed.record.attempt and rank.end is not None and not rank.end.well
    ]
    if not bad:
        return ""
    first = min(bad, key=lambda r: (_ended_by_mpirun(r), r.ended is None, r.ended, r.rank))
    if any(f"rank {rank.rank} on {rank.pod}" in said for rank in bad):
        return ""
    others = (p.name for p in observed.pods if p.role == "worker" and p.name != first.pod)
    if (
        first.end is not None
        and first.end.signal == signal.SIGTERM
        and any(o in said for o in others)
    ):
        return ""
    how = first.end.text() if first.end is not None else ""
    return f"; rank {first.rank} on {first.pod} was the first to fail, with {how}"


def _ended_by_mpirun(rank: ObservedRank) -> bool:
    return rank.end is not None and rank.end.signal == signal.SIGTERM


def pod_end(role: str, pod: ObservedPod) -> str:
    end = pod.end or End()
    detail = f": {end.message[:LONGEST_DETAIL]}" if end.message else ""
    return f"{role} {pod.name} ended with {end.text()}{detail}"
