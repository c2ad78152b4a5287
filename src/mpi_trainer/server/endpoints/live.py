"""Live streams: jobs, one job and its log, as server-sent events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from mpi_trainer.api.kinds import mpijob, trainjob
from mpi_trainer.server import values as answers
from mpi_trainer.server.live import values
from mpi_trainer.server.live.endpoint import EventStream
from mpi_trainer.server.live.job_list import job_list
from mpi_trainer.server.live.log_lines import LiveLogsQuery, log_lines
from mpi_trainer.server.live.one_job import one_job


class LiveJobsQuery(msgspec.Struct, frozen=True, rename="camel"):
    """`kind` may name several, with commas; jobs of all namespaces where none is named."""

    namespace: str = ""
    kind: tuple[str, ...] = ()


def _streams() -> Iterator[EventStream]:
    yield EventStream(
        "/api/v1/live/jobs",
        "watchJobs",
        "Jobs that you may see, and every change of them",
        job_list,
        {
            "snapshot": values.LiveJobs,
            "job": answers.JobItem,
            "deleted": values.DeletedJob,
            "resync": values.LiveJobs,
        },
        query=LiveJobsQuery,
    )
    for kind in (mpijob.KIND, trainjob.KIND):
        one = f"/api/v1/namespaces/{{namespace}}/{kind.lower()}s/{{name}}"
        yield EventStream(
            f"{one}/live",
            f"watch{kind}",
            "A job, its status and its events, and every change of them",
            one_job,
            {
                "job": answers.Job,
                "status": answers.JobStatus,
                "event": answers.Event,
                "deleted": values.DeletedJob,
            },
            kind=kind,
        )
        yield EventStream(
            f"{one}/logs/live",
            f"followLogsOf{kind}",
            "What a job wrote last, and every line as it comes",
            log_lines,
            {"lines": values.LiveLines, "end": values.LogEnd},
            query=LiveLogsQuery,
            kind=kind,
        )


STREAMS: Final = tuple(_streams())
