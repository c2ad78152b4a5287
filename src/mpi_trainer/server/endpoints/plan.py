"""What a job file would do before it is applied: rendered, tried without effect, compared."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from mpi_trainer.api import bounds
from mpi_trainer.api.errors import line
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.runtime import Runtime, serves
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml.load import JobFile
from mpi_trainer.plan.objects import named, planned_mpijob, planned_trainjob
from mpi_trainer.sdk.job.equivalents import equivalents
from mpi_trainer.server import bodies, values, views
from mpi_trainer.server.endpoint import PLAN, Answer, Call, Endpoint, Manifest
from mpi_trainer.server.problems import refused

MOST_WORKERS: Final = 2000
"""each is a pod of some KiB in the answer"""


async def render(call: Call) -> Answer:
    file = await _file(call)
    workers = sum(job.workers for job in file.jobs)
    if workers > MOST_WORKERS:
        hint = f"Send jobs of {MOST_WORKERS} workers together at most in each call."
        raise refused(422, "invalid-job", f"{workers} workers are too many to show", hint)
    items: list[Any] = await asyncio.to_thread(
        lambda: [made for job in file.jobs for made in planned_mpijob(named(job, call.namespace))]
    )
    for train_job in (named(one, call.namespace) for one in file.train_jobs):
        items += planned_trainjob(train_job, await _runtime(call, train_job, file))
    return Answer(values.Rendered(tuple(items), _warnings(file)))


async def dry_run(call: Call) -> Answer:
    file = await _file(call)
    found: list[str] = []
    for job in file.jobs:
        found += await call.backend.refusals(named(job, call.namespace))
    for train_job in file.train_jobs:
        found += await call.backend.refusals(named(train_job, call.namespace))
    return Answer(values.DryRun(not found, tuple(found), _warnings(file)))


async def diff(call: Call) -> Answer:
    file = await _file(call)
    found = await call.backend.differences(file, call.namespace)
    return Answer(values.Differences(tuple(map(views.difference, found)), _warnings(file)))


async def in_other_forms(call: Call) -> Answer:
    """Of the one job of a body."""
    file = await _file(call)
    jobs: tuple[MPIJob | TrainJob, ...] = (*file.jobs, *file.train_jobs)
    if len(jobs) != 1:
        raise refused(422, "invalid-job", f"the body holds {len(jobs)} jobs", "Send one job.")
    return await forms(jobs[0], call.namespace)


async def forms(job: MPIJob | TrainJob, namespace: str) -> Answer:
    found = await asyncio.to_thread(equivalents, job, namespace)
    return Answer(views.alike(found, values.Equivalents))


async def read_file(call: Call) -> JobFile:
    """The body's. What is large is read beside the event loop."""
    if len(call.body) > bounds.SHORT_TEXT:
        return await asyncio.to_thread(bodies.job_file, call.body, call.media_type)
    return bodies.job_file(call.body, call.media_type)


async def _file(call: Call) -> JobFile:
    file = await read_file(call)
    if not (file.jobs or file.train_jobs):
        hint = "Send a file with an MPIJob or a TrainJob."
        raise refused(422, "invalid-job", "the body holds no job", hint)
    return file


async def _runtime(call: Call, job: TrainJob, file: JobFile) -> Runtime:
    """The file's own, else the one that the job would get."""
    own = (one for one in (named(each, call.namespace) for each in file.runtimes))
    found = next((one for one in own if serves(one, job)), None)
    return found or await call.backend.runtime(job.spec.runtime_ref, job.namespace)


def _warnings(file: JobFile) -> tuple[str, ...]:
    return tuple(map(line, file.warnings))


ENDPOINTS: Final = (
    Endpoint(
        "POST",
        f"{PLAN}render",
        "renderJobFile",
        "The objects that the controller would create for a job file",
        render,
        values.Rendered,
        body=Manifest(),
    ),
    Endpoint(
        "POST",
        f"{PLAN}dry-run",
        "dryRunJobFile",
        "What the jobs of a file would be refused for",
        dry_run,
        values.DryRun,
        body=Manifest(),
    ),
    Endpoint(
        "POST",
        f"{PLAN}equivalents",
        "tellJobFile",
        "A job as a command of odh, as a program of the SDK, and as YAML",
        in_other_forms,
        values.Equivalents,
        body=Manifest(),
    ),
    Endpoint(
        "POST",
        f"{PLAN}diff",
        "diffJobFile",
        "What applying a job file would change on the cluster",
        diff,
        values.Differences,
        body=Manifest(),
    ),
)
