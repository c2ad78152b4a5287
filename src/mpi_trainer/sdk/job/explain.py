"""Why a job failed: as it was found when the job ended, else from all that its backend knows.

What is kept in the job outlives its pods and logs. Where nothing is, or nothing certain, the whole
output of the last attempt is read, however long, and only lines that show something are kept. A
job that runs well, or has succeeded, has no findings; one that seems to be stuck has a suspicion.
"""

from __future__ import annotations

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds import conditions
from mpi_trainer.decide import history
from mpi_trainer.diagnose import cause, facts, suspicion
from mpi_trainer.diagnose.evidence import Event, ObjectName
from mpi_trainer.diagnose.finding import Facts, Finding
from mpi_trainer.diagnose.log_reader import LogReader
from mpi_trainer.sdk.backends.backend import Backend, JobDetails, Key, LogQuery

# What `diagnose/waiting.py` says of a job that Kueue has suspended for another.
_GAVE_WAY = ("had to make room", "Preempted")


async def explained(backend: Backend, key: Key) -> tuple[Finding, ...]:
    """The most likely cause first."""
    details = await backend.details(key)
    if details.job.state == conditions.SUCCEEDED:
        return ()  # all its ranks have ended well, whatever was printed
    kept = kept_findings(details)
    if kept and kept[0].confidence != "possible":
        return kept
    known = job_facts(details)
    attempt, reader = 0, LogReader(known.hosts)
    async for line in backend.logs(key, LogQuery(held=bounds.HELD_OF_MANY)):
        if line.attempt > attempt:
            attempt, reader = line.attempt, LogReader(known.hosts)
        reader.read_line(line.text, line.rank)
    found = cause.concluded(reader, known)
    better = found and (not kept or found[0].confidence != "possible")
    return found if better else kept


def kept_findings(details: JobDetails) -> tuple[Finding, ...]:
    """What was found when the job failed, or that one which runs seems to be stuck; empty where it
    is neither, or where nobody kept it."""
    job = details.job
    if job.state == conditions.RUNNING:
        stuck = details.suspicion or suspicion.in_message(job.message)
        return (suspicion.finding(stuck),) if stuck else ()
    return history.findings(details.attempts) if job.state == conditions.FAILED else ()


def job_facts(details: JobDetails) -> Facts:
    """What a backend knows of a job, as a diagnosis takes it."""
    job = details.job
    reason, message = "", ""
    if job.state == conditions.FAILED:
        reason, message = job.reason, job.message
    elif not job.finished and all(word in details.waits_for for word in _GAVE_WAY):
        reason, message = "Preempted", details.waits_for
    last = details.attempts[-1] if details.attempts else history.Attempt(0, "")
    launchers = {last.pod, *(pod.name for pod in details.pods if pod.role == "launcher")}
    ends = facts.of_ends(details.pods, details.ranks, last.rank)
    return msgspec.structs.replace(
        ends,
        exit_code=0 if job.state == conditions.SUCCEEDED else ends.exit_code,
        ended=job.finished,
        reason=reason,
        message=message,
        blamed_rank=last.rank if reason else None,
        blamed_host=last.host if reason and last.host not in launchers else "",
        events=tuple(
            Event(ObjectName(name=job.name), event.type, event.reason, event.message)
            for event in details.events
        ),
    )
