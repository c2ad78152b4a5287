"""What the agent's facts mean: why it ended a job, and whose fault a failure was. Pure.

The agent records who started, ended, vanished and lost its daemon, and decides only that a job must
end. Everything that names a reason, a rank or a host to blame is concluded here, from the order in
which ranks ended and from what each MPI does to the others when one fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from signal import SIGKILL, SIGTERM
from typing import Final

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.layout.agent.summary import (
    COMMAND,
    AgentFacts,
    BadRank,
    Cause,
    FailedDaemon,
    Proof,
    Summary,
    parse,
)

replace = msgspec.structs.replace

LONGEST: Final = 600
"""characters of a text, of which programs and ssh have written parts"""
NAMED: Final = 4
"""workers that do not answer which a text names"""
_LOST_A_PEER: Final = 14
"""what Open MPI 5 has a rank end itself with that has lost another"""
_AT_ONCE, _SOON, _LATER = 15, 50, 300
"""1/100 s: until prterun ends the rest; in which a lost peer may be seen first; in which ranks that
ended count as ended together"""

_REASONS: Final = {
    "no-ssh": "NoSsh",
    "no-names": "WorkersMissing",
    "no-answer": "WorkersMissing",
    "silent": "WorkerLost",
    "orphans": "DaemonLost",
    "bad": "RankDied",
    "over": "RankDied",
    "stuck": "RankStuck",
    "unstarted": "StartStuck",
    "unanswered": "Unreachable",
    "left": "RankLeft",
    "daemon": "DaemonFailed",
    "idle": "MpirunStuck",
}


class _Blame(msgspec.Struct, frozen=True):
    reason: str
    rank: int | None = None
    pod: str = ""
    text: str = ""


def read(text: str, most: int = bounds.RANKS) -> Summary:
    """What a launcher says of at most so many ranks, with what it means."""
    return concluded(parse(text, most))


def concluded(said: Summary) -> Summary:
    """The summary with reason, text and cause; as it is where an older agent has named them."""
    facts = said.facts
    if facts is None:
        return said
    if facts.proof is None or facts.proof.what not in _REASONS:
        blame = _of_command(said, facts) if _failed(said) else None
        reason = COMMAND
    else:
        blame = _of_proof(said, facts, facts.proof)
        reason = blame.reason
    if blame is None:
        return replace(said, reason=reason)
    cause = Cause(blame.reason, blame.rank, blame.pod)
    return replace(said, reason=reason, text=blame.text[:LONGEST], cause=cause)


def _failed(said: Summary) -> bool:
    """Some launchers return 0 whatever became of the ranks."""
    return bool(said.code) or bool(said.bad or said.lost) or said.started > said.ended


# --- why the agent ended it -----------------------------------------------------------------------


def _of_proof(said: Summary, facts: AgentFacts, proof: Proof) -> _Blame:
    if proof.what in ("bad", "over"):
        return _of_bad_ranks(said, facts, proof)
    if proof.what == "daemon":
        return _of_waited_daemon(facts)
    if proof.what == "left":
        return _of_left(facts, proof)
    text = _TEXTS[proof.what](said, facts, proof)
    return _Blame(_REASONS[proof.what], proof.rank, proof.pod, text)


def _of_bad_ranks(said: Summary, facts: AgentFacts, proof: Proof) -> _Blame:
    seconds = proof.seconds
    if proof.what == "bad":
        rank, pod, how = _first_bad(said)
        text = f"{how}, and {proof.living} others of {said.started} have gone on for {seconds} s"
        return _Blame("RankDied", rank, pod, text)
    first = _of_command(said, facts)
    who = "a rank" if first.rank is None else f"rank {first.rank} on {first.pod}"
    text = f"{who} failed, none is left, and mpirun has gone on for {seconds} s"
    return _Blame("RankDied", first.rank, first.pod, text)


def _first_bad(said: Summary) -> tuple[int | None, str, str]:
    if said.bad:
        bad = said.bad[0]
        how = f"exit code {bad.status}" if bad.signal is None else f"signal {bad.signal}"
        memory = " (out of memory)" if bad.oom else ""
        return bad.rank, bad.pod, f"rank {bad.rank} on {bad.pod} ended with {how}{memory}"
    lost = _first_lost(said)
    if lost is None:
        return None, "", "a rank has failed"
    return *lost, f"rank {lost[0]} on {lost[1]} has vanished"


def _first_lost(said: Summary) -> tuple[int, str] | None:
    return min(((next(iter(group.ranks)), group.pod) for group in said.lost), default=None)


def _of_waited_daemon(facts: AgentFacts) -> _Blame:
    daemon = _first_daemon(facts)
    if daemon is None:
        return _Blame("DaemonFailed", text="an MPI daemon failed, and mpirun waits for it")
    text = (
        f"the MPI daemon on {daemon.pod} ended with exit code {daemon.status}, and mpirun waits "
        "for it; the same MPI must be installed in every pod"
    )
    return _Blame("DaemonFailed", None, daemon.pod, text)


def _of_left(facts: AgentFacts, proof: Proof) -> _Blame:
    well = facts.well
    if well is None:
        return _Blame("RankLeft", text="a rank ended without MPI_Finalize")
    text = f"{_left_text(well.rank, well.pod)}, and the other {proof.living} ranks wait for it"
    return _Blame("RankLeft", well.rank, well.pod, text)


def _left_text(rank: int, pod: str) -> str:
    return f"rank {rank} on {pod} ended with exit code 0 but without MPI_Finalize"


def _no_answer(said: Summary, facts: AgentFacts, proof: Proof) -> str:
    workers = [one for one in facts.down if one.why][:NAMED]
    named = ", ".join(f"{one.pod} ({_last_word(one.why)})" for one in workers)
    more = facts.waiting - len(workers)
    rest = f", and {more} more" if more > 0 else ""
    count = f"{facts.waiting} of {facts.workers} workers"
    return f"after {proof.seconds} s there is no answer from {count}: {named}{rest}"


def _last_word(why: str) -> str:
    """The last of what ssh says is what matters."""
    return why.rpartition(": ")[2].removesuffix(".")


def _silent(said: Summary, facts: AgentFacts, proof: Proof) -> str:
    role = "launcher" if proof.host == 0 else "worker"
    why = next((one.why for one in facts.down if one.pod == proof.pod), "")
    shown = f" ({why})" if why else ""
    return f"{role} {proof.pod} has not been heard of for {proof.seconds} s{shown}"


def _stuck(said: Summary, facts: AgentFacts, proof: Proof) -> str:
    raised = next((one for one in said.raised if one.rank == proof.rank), None)
    what = "" if raised is None else raised.what + (f" at {raised.where}" if raised.where else "")
    shown = f" ({what})" if what else ""
    return (
        f"rank {proof.rank} on {proof.pod} has failed{shown} and waits in MPI_Finalize for ranks "
        "that wait for it; start it with python -m mpi4py to end all ranks at once"
    )


def _unstarted(said: Summary, facts: AgentFacts, proof: Proof) -> str:
    if not proof.size:
        return f"mpirun has started no rank in {proof.seconds} s"
    return f"only {proof.started} of {proof.size} ranks have started in {proof.seconds} s"


_TEXTS: Final[dict[str, Callable[[Summary, AgentFacts, Proof], str]]] = {
    "no-ssh": lambda said, facts, proof: (
        "this image has no ssh, and MPI starts its ranks over SSH: add openssh-client (Debian, "
        "Ubuntu, Alpine) or openssh-clients (Fedora, UBI)"
    ),
    "no-names": lambda said, facts, proof: (
        f"for {proof.seconds} s DNS has known no name of this cluster, and so no worker: check the "
        "pod template's dnsPolicy and dnsConfig, and the cluster's DNS"
    ),
    "no-answer": _no_answer,
    "silent": _silent,
    "orphans": lambda said, facts, proof: (
        f"the MPI daemon on {proof.pod} is gone, and its ranks are not"
    ),
    "stuck": _stuck,
    "unstarted": _unstarted,
    "unanswered": lambda said, facts, proof: (
        f"connections from {proof.source} to {proof.pod} get no answer, so their ranks cannot "
        "meet; a NetworkPolicy or firewall must let the job's pods reach each other on every port"
    ),
    "idle": lambda said, facts, proof: (
        "all ranks have ended well, nothing of them is left, and mpirun has gone on for "
        f"{proof.seconds} s"
    ),
}


# --- whose fault it was, where the command failed by itself ---------------------------------------


def _of_command(said: Summary, facts: AgentFacts) -> _Blame:
    for broken in facts.dropped[:1]:
        reason = "ConnectionLost" if broken.up else "WorkerLost"
        why = f" ({broken.why})" if broken.why else ""
        return _Blame(reason, None, broken.pod, f"the connection to {broken.pod} broke{why}")
    if not said.bad:
        return _of_lost_ranks(said, facts)
    first = said.bad[0]
    blame = _of_end(first)
    if blame.reason == "RankKilled":
        blame = _of_abort(facts) or blame
    # Ranks that mpirun has ended are not to blame for what it ended them for.
    ended_by_mpirun = (blame.reason == "RankKilled" and first.signal in (SIGTERM, SIGKILL)) or (
        blame.reason == "RankFailed" and first.status == _LOST_A_PEER
    )
    if ended_by_mpirun and not facts.stopped:
        return _of_another(said, facts, first) or blame
    return blame


def _of_end(bad: BadRank) -> _Blame:
    """As its own end says."""
    if bad.orphan:
        return _Blame("DaemonLost", None, bad.pod)
    if bad.signal is None:
        return _Blame("RankFailed", bad.rank, bad.pod)
    return _Blame("OutOfMemory" if bad.oom else "RankKilled", bad.rank, bad.pod)


def _of_lost_ranks(said: Summary, facts: AgentFacts) -> _Blame:
    """No rank was seen to end badly. Those that vanish are ended all at once by their daemons, so
    that none of them is to blame."""
    lost = _first_lost(said)
    if lost is None:
        nobody = _Blame("CommandFailed")
        return _of_daemon(facts) or _of_orphans(facts) or nobody
    unborn = _of_daemon(facts) if said.started < said.size else None
    alone = sum(len(group.ranks) for group in said.lost) == 1
    vanished = _Blame("RanksLost", *lost) if alone else _Blame("RanksLost")
    return _of_raised(said) or _of_abort(facts) or unborn or vanished


def _first_daemon(facts: AgentFacts) -> FailedDaemon | None:
    """One that could not be run or was killed; others that fail then are not the cause."""
    fatal = (daemon for daemon in facts.daemons if _fatal(daemon))
    return next(fatal, facts.daemons[0] if facts.daemons else None)


def _fatal(daemon: FailedDaemon) -> bool:
    return daemon.status in (126, 127) or 131 <= daemon.status <= 139


def _of_daemon(facts: AgentFacts) -> _Blame | None:
    """When several fail with a code of their own, they only follow their mpirun."""
    daemon = _first_daemon(facts)
    if daemon is None or (not _fatal(daemon) and len(facts.daemons) > 1):
        return None
    text = f"the MPI daemon on {daemon.pod} ended with exit code {daemon.status}"
    return _Blame("DaemonFailed", None, daemon.pod, text)


def _of_orphans(facts: AgentFacts) -> _Blame | None:
    if not facts.orphans:
        return None
    return _Blame("DaemonLost", None, facts.orphans, f"the MPI daemon on {facts.orphans} is gone")


def _of_raised(said: Summary) -> _Blame | None:
    """The only rank whose Python program has failed: it ended all others, and itself, by MPI."""
    if len(said.raised) != 1:
        return None
    return _Blame("RankFailed", said.raised[0].rank, said.raised[0].pod)


def _of_abort(facts: AgentFacts) -> _Blame | None:
    """The only rank that said that it ends all others."""
    if len(facts.aborted) != 1:
        return None
    one = facts.aborted[0]
    text = f"rank {one.rank} on {one.pod} has ended all ranks by MPI_Abort({one.code})"
    return _Blame("RankFailed", one.rank, one.pod, text)


def _of_another(said: Summary, facts: AgentFacts, first: BadRank) -> _Blame | None:
    """The first rank that ended badly was ended: by another, by the loss of a daemon, by one that
    left before, or by one that never came."""
    ended = first.signal if first.signal is not None else first.status
    if ended in (_LOST_A_PEER, SIGTERM):
        own = next(_of_their_own(said), None)
        if own is not None:
            return _of_end(own)
    # Daemons take the wrappers along when they kill, and Hydra's never terminate: a rank that was
    # seen to end so was ended alone, and daemons that have left since only follow.
    alone = ended == SIGKILL or (facts.by == "hydra" and ended == SIGTERM)
    left = _of_rank_that_left(said, facts, ended)
    found = (None if alone else _of_orphans(facts)) or _of_daemon(facts) or left
    return found or _of_terminated(said, facts, ended) or _of_missing_ranks(said, facts)


def _of_their_own(said: Summary) -> Iterator[BadRank]:
    """Of ranks that ended together, those that nobody has ended: dying by a signal takes longer to
    be seen than leaving with a code."""
    for bad in said.bad:
        if _since_first(said, bad) > _LATER:
            return
        if bad.status != _LOST_A_PEER and bad.signal != SIGTERM:
            yield bad


def _of_rank_that_left(said: Summary, facts: AgentFacts, ended: int | None) -> _Blame | None:
    """Its connections close before its end can be seen, so that one that lost it may be seen to
    end first, by a moment; of prterun's ranks a code of 14 means just that, where only one has
    ended well."""
    well, first = facts.well, said.bad[0].at
    if well is None or first is None:
        return None
    near = well.at - first <= _SOON
    lost = _by_prterun(facts) and ended == _LOST_A_PEER and well.count == 1 and near
    if well.at > first and not lost:
        return None
    return _Blame("RankLeft", well.rank, well.pod, _left_text(well.rank, well.pod))


def _of_terminated(said: Summary, facts: AgentFacts, ended: int | None) -> _Blame | None:
    """Where one of prterun's ranks has lost another, and all others ended by SIGTERM: the first
    that did so in that same moment. prterun takes a quarter of a second to end the rest."""
    if not _by_prterun(facts) or ended != _LOST_A_PEER:
        return None
    together = (bad for bad in said.bad if _since_first(said, bad) <= _AT_ONCE)
    killed = next((bad for bad in together if bad.signal == SIGTERM), None)
    return None if killed is None else _Blame("RankKilled", killed.rank, killed.pod)


def _of_missing_ranks(said: Summary, facts: AgentFacts) -> _Blame | None:
    if said.started >= said.size:
        return None
    text = f"only {said.started} of {said.size} ranks have started"
    if len(facts.absent) != 1:
        return _Blame("StartFailed", text=text)
    return _Blame("StartFailed", None, facts.absent[0], f"{text}, none on {facts.absent[0]}")


def _since_first(said: Summary, bad: BadRank) -> int:
    return (bad.at or 0) - (said.bad[0].at or 0)


def _by_prterun(facts: AgentFacts) -> bool:
    return facts.world.startswith("prterun")
