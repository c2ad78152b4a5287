"""Why a job failed: as it was found when the job ended, else from all that its backend knows.

What is kept in the job outlives its pods and logs. Where nothing is, or nothing certain, the whole
output of the last attempt is read, however long, and only lines that show something are kept. A
job that runs well, or has succeeded, has no findings.
"""

from __future__ import annotations

import msgspec

from mpi_trainer.api.kinds import conditions
from mpi_trainer.decide import history
from mpi_trainer.diagnose import cause, facts
from mpi_trainer.diagnose.evidence import Event, ObjectName
from mpi_trainer.diagnose.finding import Facts, Finding
from mpi_trainer.diagnose.log_reader import LogReader
from mpi_trainer.sdk.backends.backend import Backend, JobDetails, Key, LogQuery


async def explained(backend: Backend, key: Key) -> tuple[Finding, ...]:
    """The most likely cause first."""
    details = await backend.details(key)
    kept = kept_findings(details)
    if kept and kept[0].confidence != "possible":
        return kept
    known = job_facts(details)
    attempt, reader = 0, LogReader(known.hosts)
    async for line in backend.logs(key, LogQuery()):
        if line.attempt > attempt:
            attempt, reader = line.attempt, LogReader(known.hosts)
        reader.read_line(line.text, line.rank)
    found = cause.concluded(reader, known)
    better = found and (not kept or found[0].confidence != "possible")
    return found if better else kept


def kept_findings(details: JobDetails) -> tuple[Finding, ...]:
    """What was found when the job failed; empty where it has not, or where nobody kept it."""
    failed = details.job.state == conditions.FAILED
    return history.findings(details.attempts) if failed else ()


def job_facts(details: JobDetails) -> Facts:
    """What a backend knows of a job, as a diagnosis takes it."""
    job = details.job
    failed = job.state == conditions.FAILED
    first = details.attempts[-1].rank if details.attempts else None
    ends = facts.of_ends(details.pods, details.ranks, first)
    return msgspec.structs.replace(
        ends,
        exit_code=0 if job.state == conditions.SUCCEEDED else ends.exit_code,
        ended=job.finished,
        reason=job.reason if failed else "",
        message=job.message if failed else "",
        events=tuple(
            Event(ObjectName(name=job.name), event.type, event.reason, event.message)
            for event in details.events
        ),
    )
