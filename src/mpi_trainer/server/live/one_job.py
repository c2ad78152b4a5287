"""One job as events: the job, its status and its events, at first and whenever one changes.

Nothing of it is shared between callers: what is said of a job depends on what its reader may see.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from mpi_trainer.server import values as answers
from mpi_trainer.server import views
from mpi_trainer.server.live.endpoint import LiveCall
from mpi_trainer.server.live.values import DeletedJob, Sent


async def one_job(call: LiveCall) -> AsyncGenerator[Sent, None]:
    """Ends with `deleted`. Rights are those of each look: without them it ends with a problem."""
    job: answers.Job | None = None
    status: answers.JobStatus | None = None
    told: frozenset[answers.Event] = frozenset()
    async with aclosing(call.backend.live.details(call.key)) as states:
        async for found in states:
            call.reader.check_login()
            now, stands = views.job(found.job), views.status(found)
            version = str((now.manifest.get("metadata") or {}).get("resourceVersion") or "")
            if now != job:
                job = now
                yield Sent("job", now, version)
            if stands != status:
                status = stands
                yield Sent("status", stands, version)
            events = views.alike(found.events, tuple[answers.Event, ...])
            for event in events:
                if event not in told:
                    yield Sent("event", event, version)
            told = frozenset(events)
    if job is not None:
        yield Sent("deleted", DeletedJob(job.kind, job.namespace, job.name, job.uid))
