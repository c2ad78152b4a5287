"""Progress of a TrainJob whose program only prints it: read from its log, where that is wanted.

For jobs that ask for it by OpenShift AI's annotation, every half a minute or as they say: the end
of the log of the first pod that trains (of MPI, the launcher's), bounded as all reading of logs is.
What a program reports itself is newer than its log, and is left alone. Danger: it believes what the
program prints.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from mpi_trainer.api.effective.combine import TRAINER, Effective
from mpi_trainer.api.effective.overrides import NODE_CONTAINER
from mpi_trainer.api.kinds.annotations import TRACKING_INTERVAL
from mpi_trainer.api.kinds.labels import (
    LABEL_COMPLETION_INDEX,
    LABEL_REPLICATED_JOB,
    LABEL_TRAINJOB,
)
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.objects import Pod
from mpi_trainer.controller.pod_logs import PodLogs, UnreadableLog
from mpi_trainer.controller.statusserver.report import Metric, Report, is_tracked
from mpi_trainer.controller.statusserver.writes import OtherJob, ReportWrites
from mpi_trainer.controller.trainjob.pods import PodOwners
from mpi_trainer.decide.trainjob import status_annotations as f
from mpi_trainer.diagnose.progress import Progress, Tracker
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import KubeError
from mpi_trainer.kube.lists import list_all as listed
from mpi_trainer.kube.resources import PODS
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.token_reviews import Busy

USUAL: Final = timedelta(seconds=30)
SHORTEST, LONGEST = timedelta(seconds=5), timedelta(seconds=300)
SPEED_SAMPLES: Final = 8
MOST_METRICS: Final = 32
_TAG: Final = re.compile(r"\[1,\d{1,6}\]<std(?:out|err)>: ?|\[\d{1,6}\] ")
"""with which an mpirun marks whose line it is"""


class _LogReads(msgspec.Struct):
    """Of one job: when its log is read next, what was stored, and how fast it went of late."""

    due: datetime | None = None
    said: Report | None = None
    speed: deque[tuple[datetime, float]] = msgspec.field(
        default_factory=lambda: deque(maxlen=SPEED_SAMPLES)
    )


class LogProgress:
    def __init__(
        self,
        client: Client,
        logs: PodLogs,
        pod_owners: PodOwners,
        memories: JobMemories,
        writes: ReportWrites,
    ) -> None:
        self._client = client
        self._logs = logs
        self._pod_owners = pod_owners
        self._memories = memories
        self._writes = writes

    async def store_due(
        self, job: TrainJob, effective: Effective, job_set: str, now: datetime
    ) -> float | None:
        """Reads and stores what is due; the seconds until there is more to read, if ever."""
        notes = job.metadata.annotations
        if not is_tracked(notes) or f.read(notes).phase != f.RUNNING:
            return None
        known, every = (
            self._memories.part(job.metadata.uid, _LogReads),
            interval(notes.get(TRACKING_INTERVAL, "")),
        )
        if known.due is not None and now < known.due <= now + every:
            return (known.due - now).total_seconds()
        known.due = now + every
        try:
            progress = await self._progress(job, effective, job_set)
            report = None if progress is None else reported(progress, known.speed, now)
            if report is not None and _says_more(report, known.said, job):
                key = Key(job.namespace, job.name)
                await self._writes.write(key, job.metadata.uid, report)
                known.said = report
        except (KubeError, UnreadableLog, Busy, OtherJob):
            pass  # at the next time; nobody waits for it
        return every.total_seconds()

    async def _progress(self, job: TrainJob, effective: Effective, job_set: str) -> Progress | None:
        trainer = next((one for one in effective.jobs if one.ancestor == TRAINER), None)
        if trainer is None:
            return None
        labels = (
            f"{LABEL_TRAINJOB}={job.name},{LABEL_REPLICATED_JOB}={trainer.name},"
            f"{LABEL_COMPLETION_INDEX}=0"
        )
        page = await listed(self._client, PODS, Pod, namespace=job.namespace, labels=labels)
        own = await self._pod_owners.owned(job, job_set, page.items)
        running = [pod for pod in own if pod.status.phase == "Running"]
        if not running:
            return None
        text = await self._logs.end(running[-1], NODE_CONTAINER)
        # Some milliseconds for a long log, and more for a hostile one.
        return await asyncio.to_thread(read, text.splitlines())


def read(lines: Iterable[str]) -> Progress | None:
    tracker = Tracker()
    for line in lines:
        tracker.see(0.0, _TAG.sub("", line, count=1))
    return tracker.progress


def reported(
    progress: Progress, speed: deque[tuple[datetime, float]], now: datetime
) -> Report | None:
    """What there is to report; `speed` has when which part was done, and this is added to it."""
    done = progress.fraction
    if done is None and not progress.metrics:
        return None
    if done is not None:
        if speed and done < speed[-1][1]:
            speed.clear()  # it began anew
        speed.append((now, done))
    names = [name for name in progress.metrics if 0 < len(name) <= 64][-MOST_METRICS:]
    return Report(
        last_updated_time=now,
        progress_percentage=None if done is None else int(done * 100),
        estimated_remaining_seconds=_left(speed) if done is not None else None,
        metrics=tuple(Metric(name, f"{progress.metrics[name]:.12g}") for name in names),
    )


def _left(speed: deque[tuple[datetime, float]]) -> int | None:
    (began, first), (now, last) = speed[0], speed[-1]
    if last >= 1:
        return 0
    if last <= first or now <= began:
        return None
    return min(int((1 - last) * (now - began).total_seconds() / (last - first)), 2**31 - 1)


def _says_more(report: Report, said: Report | None, job: TrainJob) -> bool:
    """Whether it says more than what is stored, and the program has said nothing itself."""
    stored = job.status.trainer_status
    if stored is not None and stored.last_updated_time is not None:
        ours = said is not None and stored.last_updated_time == said.last_updated_time.replace(
            microsecond=0
        )
        late = report.last_updated_time - stored.last_updated_time > LONGEST
        if not ours and not late:
            return False
    return (
        said is None
        or msgspec.structs.replace(said, last_updated_time=report.last_updated_time) != report
    )


def interval(text: str) -> timedelta:
    """`30`, `45s`, `1m`; within bounds, and the usual one where it says none."""
    found = re.fullmatch(r"(\d{1,6})(s|m)?", text.strip())
    if found is None:
        return USUAL
    seconds = int(found[1]) * (60 if found[2] == "m" else 1)
    return min(max(timedelta(seconds=seconds), SHORTEST), LONGEST)
