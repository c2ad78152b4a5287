"""Everything that the API server knows of a job, fetched at once.

What the caller may not see (pods, events, logs) is left out: a job's own state is worth having
alone. Progress is read from the end of the launcher's log, where programs print it.
"""

from __future__ import annotations

import asyncio
from typing import Final

from mpi_trainer.decide import history
from mpi_trainer.decide.trainjob import status_annotations
from mpi_trainer.diagnose.progress import Progress, Tracker
from mpi_trainer.diagnose.rank_lines import RankLines
from mpi_trainer.diagnose.waiting import why
from mpi_trainer.kube import lists, requests
from mpi_trainer.kube.errors import Forbidden, KubeError
from mpi_trainer.kube.requests import LogOptions
from mpi_trainer.kube.resources import EVENTS
from mpi_trainer.sdk.backends.backend import EventInfo, JobDetails, JobView, Key
from mpi_trainer.sdk.backends.cluster import observed
from mpi_trainer.sdk.backends.cluster.connections import Home
from mpi_trainer.sdk.backends.cluster.evidence import is_waiting, waiting_evidence
from mpi_trainer.sdk.backends.cluster.find import FoundJob
from mpi_trainer.sdk.backends.cluster.job_logs import pods_of
from mpi_trainer.sdk.backends.cluster.kinds import MPIJOB, Kind
from mpi_trainer.sdk.backends.cluster.log_position import LogPosition

LINES: Final = 200


async def details(home: Home, key: Key, found: FoundJob) -> JobDetails:
    job, kind = found.view, found.kind
    pods, events = await asyncio.gather(_pods(home, key, kind), _events(home, key, found.uid))
    return JobDetails(
        job=job,
        pods=tuple(
            observed.pod_info(p) for p in sorted(pods, key=lambda p: (p.role, p.attempt, p.index))
        ),
        ranks=observed.rank_infos(pods),
        events=events,
        progress=await _progress(home, pods),
        waits_for=await _waits_for(home, key, job) if kind is MPIJOB else _cause(job),
        attempts=history.read(job.annotations),
    )


def _cause(job: JobView) -> str:
    """What a TrainJob's controller says that it waits for."""
    notes = status_annotations.read(job.annotations)
    return notes.cause if notes.phase == status_annotations.PENDING else ""


async def _waits_for(home: Home, key: Key, job: JobView) -> str:
    """Why it does not run, by what can be seen; else what its controller says."""
    said = observed.waits_for(job.conditions)
    return why(await waiting_evidence(home, key, job)) or said if is_waiting(job) else said


async def _pods(home: Home, key: Key, kind: Kind) -> tuple[observed.Pod, ...]:
    try:
        return await pods_of(home, key, kind)
    except Forbidden:
        return ()


async def _events(home: Home, key: Key, uid: str) -> tuple[EventInfo, ...]:
    about = f"involvedObject.uid={uid}"
    try:
        page = await lists.list_all(
            home.client, EVENTS, observed.ClusterEvent, namespace=key.namespace, fields=about
        )
    except Forbidden:
        return ()
    return observed.event_infos(page.items)


async def _progress(home: Home, pods: tuple[observed.Pod, ...]) -> Progress | None:
    """What the newest launcher says; a log that cannot be had just now is no error."""
    launchers = [p for p in pods if p.role == "launcher" and p.status.phase != "Pending"]
    if not launchers:
        return None
    newest = max(launchers, key=lambda p: (p.attempt, p.metadata.creation_timestamp))
    options = LogOptions(container=newest.container, timestamps=True, tail=LINES)
    request = requests.logs(newest.metadata.namespace, newest.name, options)
    try:
        text = await home.client.fetch(request)
    except KubeError:
        return None
    tracker, place = Tracker(), LogPosition()
    stream = RankLines(newest.name, "launcher", "stdout")
    for line in text.split(b"\n"):
        entry = place.take(line) if line else None
        for one in stream.feed(entry.text + b"\n") if entry else ():
            tracker.see(entry.time.timestamp() if entry else 0.0, one.text)
    return tracker.progress
