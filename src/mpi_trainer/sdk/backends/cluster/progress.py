"""How far jobs are, by the end of the logs where programs print it; and whether they seem stuck,
as their agent has written there.

A list reads few logs and not for long (`MOST_JOBS`, `SECONDS`): the newest running jobs say how far
they are, and others only what their own objects say. A log that cannot be had is no error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from mpi_trainer.api.effective.combine import DATASET, MODEL
from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.labels import (
    LABEL_COMPLETION_INDEX,
    LABEL_JOB,
    LABEL_JOBSET,
    LABEL_REPLICATED_JOB,
    LABEL_ROLE,
)
from mpi_trainer.api.names import LABEL_LENGTH
from mpi_trainer.diagnose import suspicion
from mpi_trainer.diagnose.progress import Progress, Tracker
from mpi_trainer.diagnose.rank_lines import RankLines
from mpi_trainer.kube import lists, requests
from mpi_trainer.kube.errors import KubeError
from mpi_trainer.kube.requests import LogOptions, Request
from mpi_trainer.kube.resources import MPIJOBS, PODS, TRAINJOBS
from mpi_trainer.layout.agent.quiet import QuietReader
from mpi_trainer.sdk.backends.backend import JobSummary, Key
from mpi_trainer.sdk.backends.cluster import observed
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.log_position import LogPosition

LINES: Final = 200
MOST_JOBS: Final = 20
SECONDS: Final = 2.0
_BYTES: Final = 64 << 10
_SPEAKERS: Final = {
    MPIJOBS.kind: (LABEL_JOB, f"{LABEL_ROLE}=launcher"),
    TRAINJOBS.kind: (
        LABEL_JOBSET,
        f"{LABEL_REPLICATED_JOB} in (launcher,node,{DATASET},{MODEL}),{LABEL_COMPLETION_INDEX}=0",
    ),
}
"""by kind, the label with the job's name, and which of its pods print how far it is"""


class LogEnd(msgspec.Struct, frozen=True):
    """What the end of a log says. `suspicion` is empty where the job does not seem stuck."""

    progress: Progress | None = None
    suspicion: str = ""


async def log_end(server: ApiServer, pods: Iterable[observed.Pod]) -> LogEnd:
    """What the newest launcher says."""
    found = list(pods)
    speakers = [p for p in found if p.role == "launcher" and p.status.phase != "Pending"]
    if not speakers:
        # Until ranks run, what fetches their data says how far it is.
        speakers = [p for p in found if _fetches(p) and p.status.phase == "Running"]
    if not speakers:
        return LogEnd()
    newest = max(speakers, key=lambda p: (p.attempt, p.metadata.creation_timestamp))
    return await _read(server, newest, _log(newest))


async def with_progress(
    server: ApiServer, namespace: str, jobs: Sequence[JobSummary]
) -> list[JobSummary]:
    """The same jobs, the newest running ones with what their pods say; others as they are."""
    running = (job for job in jobs if _is_under_way(job) and job.progress is None)
    chosen = [job for job in running if job.kind in _SPEAKERS][:MOST_JOBS]
    if not chosen:
        return list(jobs)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + SECONDS
    found: dict[tuple[str, Key], Progress | None] = {}

    async def one(kind: str, key: Key, pod: observed.Pod) -> None:
        # A client that blocks cannot be interrupted, so each request has its own limit too.
        left = deadline - loop.time()
        if left > 0:
            request = msgspec.structs.replace(_log(pod, _BYTES), timeout=left, tries=1)
            found[kind, key] = (await _read(server, pod, request)).progress

    try:
        async with asyncio.timeout_at(deadline):
            for kind in _SPEAKERS:
                keys = [job.key for job in chosen if job.kind == kind]
                pods = await _speakers(server, namespace, kind, keys) if keys else {}
                await asyncio.gather(*(one(kind, key, pod) for key, pod in pods.items()))
    except (KubeError, TimeoutError):
        pass
    return [
        msgspec.structs.replace(job, progress=found.get((job.kind, job.key)) or job.progress)
        for job in jobs
    ]


def _is_under_way(job: JobSummary) -> bool:
    """A TrainJob is created for as long as its initializers run."""
    return job.state == c.RUNNING or (job.state == c.CREATED and job.kind == TRAINJOBS.kind)


def _fetches(pod: observed.Pod) -> bool:
    return pod.metadata.labels.get(LABEL_REPLICATED_JOB, "") in (DATASET, MODEL)


async def _speakers(
    server: ApiServer, namespace: str, kind: str, keys: Sequence[Key]
) -> dict[Key, observed.Pod]:
    """The pod of each job that prints how far it is; one request for all of them."""
    label, which = _SPEAKERS[kind]
    names = ",".join(sorted({key.name for key in keys if len(key.name) <= LABEL_LENGTH}))
    page = await lists.list_all(
        server.client,
        PODS,
        observed.Pod,
        namespace=namespace,
        labels=f"{label} in ({names}),{which}",
        fields="status.phase=Running",
        patience=SECONDS,
    )
    wanted, pods = set(keys), {}
    # A launcher speaks for the nodes, these for what fetched their data, and the newest attempt
    # for the job.
    for pod in sorted(page.items, key=lambda p: (p.role == "launcher", not _fetches(p), p.attempt)):
        key = Key(pod.metadata.namespace, pod.metadata.labels.get(label, ""))
        if key in wanted:
            pods[key] = pod
    return pods


def _log(pod: observed.Pod, limit: int | None = None) -> Request:
    options = LogOptions(pod.container, timestamps=True, tail=LINES, limit_bytes=limit)
    return requests.logs(pod.metadata.namespace, pod.name, options)


async def _read(server: ApiServer, pod: observed.Pod, request: Request) -> LogEnd:
    try:
        text = await server.client.fetch(request)
    except KubeError:
        return LogEnd()
    tracker, place, quiet = Tracker(), LogPosition(), QuietReader()
    stream = RankLines(pod.name, "launcher", "stdout")
    for line in text.split(b"\n"):
        entry = place.take(line) if line else None
        if entry is None:
            continue
        for one in stream.feed(entry.text + b"\n"):
            tracker.see(entry.time.timestamp(), one.text)
        for event in stream.events:
            quiet.read_line(event)
    return LogEnd(tracker.progress, suspicion.text(quiet.quiet))
