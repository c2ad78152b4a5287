"""The last words of a launcher that failed, and of every attempt that ends (OBS-4, W-7).

Status and events show a line of it, the record of attempts keeps more. Both can be switched off, by
the administrator for all jobs and by a job for itself.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

import msgspec

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.annotations import LOG_TAIL, OFF
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.controller import log_tail, redact
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.log_tail import NOTE, Environment, Speaker
from mpi_trainer.controller.mpijob.observe import OwnedObjects
from mpi_trainer.controller.objects import Pod
from mpi_trainer.controller.observed_pods import attempt, launcher_end
from mpi_trainer.controller.pod_logs import PodLogs, UnreadableLog
from mpi_trainer.decide import agent_summary, history
from mpi_trainer.decide.history import Attempt, History, LogTail
from mpi_trainer.decide.mpijob.decision import MPIJobDecision
from mpi_trainer.decide.observed import Record
from mpi_trainer.layout.agent import launcher_log as agentwords

WORKERS = 2
"""workers that failed by themselves whose words are kept"""


class Tail(msgspec.Struct):
    """The last words of the pod with this uid, in one line."""

    pod: str = ""
    text: str = ""


class Unstored(msgspec.Struct):
    """What an attempt said that is not stored yet: should the write fail, its log may be gone by
    the next one."""

    attempt: int = 0
    words: tuple[LogTail, ...] = ()


class LogTails:
    """`on` is the administrator's switch; a job can switch its own off."""

    def __init__(self, logs: PodLogs, memories: JobMemories, on: bool = True) -> None:
        self._logs = logs
        self._memories = memories
        self._on = on

    def shows(self, job: MPIJob) -> bool:
        """Whether anything that the job's programs wrote may be shown."""
        return self._on and job.metadata.annotations.get(LOG_TAIL) != OFF

    async def of(self, job: MPIJob, memory: Record, mine: OwnedObjects) -> str | None:
        """Empty where the launcher of this attempt has not failed, or nothing can be had.

        None where tails are switched off.
        """
        if not self.shows(job):
            return None
        pod = _launcher(memory, mine)
        if pod is None or pod.status.phase != "Failed" or memory.retry_at is not None:
            return ""
        if c.finished(job.status.conditions):
            return ""
        known = self._memories.of(job.metadata.uid, Tail)
        if known.pod != pod.metadata.uid:
            known.text = await self._fetch(job, pod)
            known.pod = pod.metadata.uid
        return known.text

    async def history(
        self,
        job: MPIJob,
        memory: Record,
        mine: OwnedObjects,
        decision: MPIJobDecision,
        now: datetime,
    ) -> History | None:
        """What is to be stored of the job's attempts with this decision; None: as it is."""
        known = history.read(job.metadata.annotations)
        if c.holds(decision.status.conditions, c.SUCCEEDED):
            quiet = history.without_output(known)
            return None if quiet == known else quiet
        ended = history.ended_attempt(memory, decision.record, now)
        if ended is None or (not mine.pods and not known and memory.attempt == 1):
            return None
        pod = _launcher(memory, mine)
        ended = _blamed(ended, pod, job.workers)
        if not self.shows(job):
            return history.with_attempt(known, log_tail.unspoken(ended))
        unstored = self._memories.of(job.metadata.uid, Unstored)
        if unstored.attempt == ended.attempt and unstored.words:
            ended = msgspec.structs.replace(ended, words=unstored.words)
        else:
            speakers = _speakers(memory, mine, job.workers)
            ended = await log_tail.spoken(self._logs, ended, speakers, _environment(job))
            unstored.attempt, unstored.words = ended.attempt, ended.words
        return history.with_attempt(known, ended)

    async def _fetch(self, job: MPIJob, pod: Pod) -> str:
        end, summary = launcher_end(pod, job.workers)
        said, charge = end.message, ""
        if not said:
            try:
                said = _words(await self._logs.end(pod))
            except UnreadableLog:
                return ""
            charge = agent_summary.with_logged_cause(
                summary, agentwords.first(said.splitlines())
            ).text
        # Some milliseconds for a long log, and many for a hostile one.
        shown = await asyncio.to_thread(redact.tail, said, _environment(job))
        return "\n".join(filter(None, (charge, shown)))


def _blamed(ended: Attempt, pod: Pod | None, workers: int) -> Attempt:
    """With when it began, and whose fault its end was."""
    ended = msgspec.structs.replace(ended, began=log_tail.began(pod))
    if pod is None:
        return ended
    ended = msgspec.structs.replace(ended, pod=pod.metadata.name)
    _, said = launcher_end(pod, workers)
    if said.cause is None or ended.reason == history.SUSPENDED:
        return ended
    return msgspec.structs.replace(ended, rank=said.cause.rank, host=said.cause.pod)


def _launcher(memory: Record, mine: OwnedObjects) -> Pod | None:
    return next((p for p in mine.launchers if attempt(p) == memory.attempt), None)


def _speakers(memory: Record, mine: OwnedObjects, workers: int) -> list[Speaker]:
    """The launcher, and workers that failed by themselves."""
    pod = _launcher(memory, mine)
    failed = [Speaker(p) for p in mine.workers if p.status.phase == "Failed"][:WORKERS]
    if pod is None:
        return failed
    _, said = launcher_end(pod, workers)
    return [Speaker(pod, ranks=log_tail.failed_ranks(said)), *failed]


def _words(log: str) -> str:
    return "\n".join(line for line in log.splitlines() if not line.startswith(NOTE))


def _environment(job: MPIJob) -> Environment:
    """Every variable that the job's templates set outright."""
    return [
        (variable.name, variable.value)
        for replica in (job.launcher, job.worker)
        for container in replica.template.view.spec.containers
        for variable in container.env
        if variable.value
    ]
