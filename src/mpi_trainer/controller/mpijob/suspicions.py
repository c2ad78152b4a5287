"""Whether an MPIJob that runs seems to be stuck: what its agent has found, read when it says so.

The agent has one way to tell that needs no right and no connection: its launcher's readiness. The
kubelet asks for it on its node and tells the API server only when it changes, so nothing is asked
from here while nothing is wrong. Then the end of the launcher's log is read, once, for what the
agent has written there. Danger: a launcher with a readiness probe of its own tells nothing.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import msgspec

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds import pod_status
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.log_tail import started_at
from mpi_trainer.controller.mpijob.observe import OwnedObjects
from mpi_trainer.controller.objects import Pod
from mpi_trainer.controller.observed_pods import attempt
from mpi_trainer.controller.pod_logs import PodLogs, UnreadableLog
from mpi_trainer.decide.observed import Record
from mpi_trainer.diagnose import suspicion
from mpi_trainer.layout.agent.choice import settings
from mpi_trainer.layout.agent.quiet import QuietReader


class _Read(msgspec.Struct):
    """What was read of the pod with this uid since it has not been ready."""

    pod: str = ""
    text: str = ""
    unread: bool = False


class Suspicions:
    def __init__(self, logs: PodLogs, memories: JobMemories) -> None:
        self._logs = logs
        self._memories = memories

    async def text(self, job: MPIJob, memory: Record, owned: OwnedObjects, now: datetime) -> str:
        """Empty where there is nothing to suspect. Where the log cannot be read, what was found
        before, if anything was."""
        known = self._memories.part(job.metadata.uid, _Read)
        pod = next((p for p in owned.launchers if attempt(p.metadata) == memory.attempt), None)
        if pod is None or not may_be_stuck(job, pod, now):
            known.pod, known.text, known.unread = "", "", False
            return ""
        if known.pod != pod.metadata.uid:
            try:
                log = await self._logs.end(pod)
            except UnreadableLog:
                known.unread = True
                return _marked(job)
            # Some milliseconds for a long log.
            known.text = await asyncio.to_thread(read, log)
            known.pod, known.unread = pod.metadata.uid, False
        return known.text

    def unread(self, job: MPIJob) -> bool:
        """Whether there may be something that could not be read: nothing else will wake the job."""
        return self._memories.part(job.metadata.uid, _Read).unread


def may_be_stuck(job: MPIJob, pod: Pod, now: datetime) -> bool:
    """Whether the agent may have said so. A launcher that has just begun is not ready either, and
    has nothing to tell before its bound."""
    if not c.holds(job.status.conditions, c.RUNNING) or pod.status.phase != pod_status.RUNNING:
        return False
    if pod_status.condition(pod.status.conditions, pod_status.READY, "False") is None:
        return False
    seconds, began = settings(job.metadata.annotations).suspect, started_at(pod)
    return bool(seconds) and began is not None and now - began >= timedelta(seconds=seconds)


def read(log: str) -> str:
    """Pure."""
    reader = QuietReader()
    for line in log.splitlines():
        reader.read_line(line)
    return suspicion.text(reader.quiet)


def _marked(job: MPIJob) -> str:
    """What the job's condition says already."""
    running = c.find(job.status.conditions, c.RUNNING)
    return suspicion.in_message(running.message) if running is not None else ""
