"""Why a job failed: its output and everything that its backend knows, read by `diagnose/cause.py`.

The whole output of the last attempt is read, however long, and only lines that show something are
kept. A job that runs well, or has succeeded, has no findings.
"""

from __future__ import annotations

import re

from mpi_trainer.api.kinds import conditions
from mpi_trainer.api.kinds.pod_status import OOM_KILLED, DetailedPodStatus
from mpi_trainer.diagnose import cause
from mpi_trainer.diagnose.evidence import Event, Meta, ObjectName, Pod
from mpi_trainer.diagnose.finding import Facts, Finding
from mpi_trainer.diagnose.log_reader import LogReader
from mpi_trainer.layout.agent.summary import BadRank, Summary
from mpi_trainer.sdk.backends.backend import Backend, JobDetails, Key, LogQuery, PodInfo, RankInfo

# As `decide.observed.End` writes how a process ended.
_END = re.compile(
    r"(?:signal (?P<signal>\d{1,3})|exit code (?P<code>\d{1,3}))(?: \((?P<reason>\w{1,80})\))?"
)


async def explained(backend: Backend, key: Key) -> tuple[Finding, ...]:
    """The most likely cause first."""
    facts = job_facts(await backend.details(key))
    attempt, reader = 0, LogReader(facts.hosts)
    async for line in backend.logs(key, LogQuery()):
        if line.attempt > attempt:
            attempt, reader = line.attempt, LogReader(facts.hosts)
        reader.read_line(line.text, line.rank)
    # Hydra may lose a rank's last line; the agent has read it, and the status quotes it.
    reader.read_line(facts.message)
    found = cause.findings(reader.close(), facts)
    # Nothing is wrong with a job that runs and has said nothing of a failure.
    silent = not facts.ended and not facts.reason and found and found[0].confidence == "possible"
    return () if silent else found


def job_facts(details: JobDetails) -> Facts:
    """What a backend knows of a job, as a diagnosis takes it."""
    job = details.job
    launcher = next((pod.end for pod in details.pods if pod.role == "launcher" and pod.end), "")
    ended = _END.search(launcher)
    failed = job.state == conditions.FAILED
    return Facts(
        exit_code=_code(ended, succeeded=job.state == conditions.SUCCEEDED),
        signal=int(ended["signal"]) if ended and ended["signal"] else None,
        ended=job.finished,
        reason=job.reason if failed else "",
        message=job.message if failed else "",
        summary=Summary(level="full", bad=_bad_ranks(details)),
        pods=tuple(_pod(pod) for pod in details.pods if pod.end),
        events=tuple(
            Event(ObjectName(name=job.name), event.type, event.reason, event.message)
            for event in details.events
        ),
        hosts=tuple((rank.rank, rank.pod) for rank in details.ranks),
    )


def _code(ended: re.Match[str] | None, *, succeeded: bool) -> int | None:
    if succeeded:
        return 0
    return int(ended["code"]) if ended and ended["code"] else None


def _bad_ranks(details: JobDetails) -> tuple[BadRank, ...]:
    """Those that ended badly, the one that its last attempt blames first."""
    first = details.attempts[-1].rank if details.attempts else None
    bad = [one for rank in details.ranks if (one := _bad_rank(rank)) is not None]
    return tuple(sorted(bad, key=lambda one: one.rank != first))


def _bad_rank(rank: RankInfo) -> BadRank | None:
    ended = _END.search(rank.end)
    if ended is None or ended["code"] == "0":
        return None
    return BadRank(
        rank=rank.rank,
        pod=rank.pod,
        status=int(ended["code"]) if ended["code"] else None,
        signal=int(ended["signal"]) if ended["signal"] else None,
        pid=rank.pid,
        oom=ended["reason"] == OOM_KILLED,
    )


def _pod(pod: PodInfo) -> Pod:
    ended = _END.search(pod.end)
    reason = (ended["reason"] or "") if ended else pod.end
    return Pod(metadata=Meta(name=pod.name), status=DetailedPodStatus(reason=reason))
