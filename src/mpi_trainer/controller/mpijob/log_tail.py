"""The end of the log of a launcher that failed, and of every attempt of an MPIJob (OBS-4, W-7).

Status and events show a line of it, the history of attempts keeps more. Both can be switched off,
by the administrator for all jobs and by a job for itself.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

import msgspec

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.controller import log_tail, redact
from mpi_trainer.controller.findings import attempt_facts
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.log_tail import AGENT_LINE, AGENT_WAITS, Environment, LogSource
from mpi_trainer.controller.mpijob.observe import OwnedObjects
from mpi_trainer.controller.objects import Pod
from mpi_trainer.controller.observed_pods import attempt, launcher_end
from mpi_trainer.controller.pod_logs import PodLogs, UnreadableLog
from mpi_trainer.decide import agent_summary, history
from mpi_trainer.decide.history import Attempt, History
from mpi_trainer.decide.mpijob.decision import MPIJobDecision
from mpi_trainer.decide.observed import Record
from mpi_trainer.layout.agent import launcher_log

replace = msgspec.structs.replace

WORKERS = 2
"""workers that failed by themselves whose log tails are kept"""


class Tail(msgspec.Struct):
    """The end of the log of the pod with this uid, in one line."""

    pod: str = ""
    text: str = ""


class Unstored(msgspec.Struct):
    """An attempt with its log tails that is not stored yet: should the write fail, the logs may be
    gone by the next one."""

    attempt: Attempt | None = None


class LogTails:
    """`on` is the administrator's switch; a job can switch its own off."""

    def __init__(self, logs: PodLogs, memories: JobMemories, on: bool = True) -> None:
        self._logs = logs
        self._memories = memories
        self._on = on

    async def failed_launcher(self, job: MPIJob, memory: Record, owned: OwnedObjects) -> str | None:
        """Empty where the launcher of this attempt has not failed, or its log cannot be read; None
        where log tails are switched off."""
        if not log_tail.allowed(job.metadata.annotations, self._on):
            return None
        pod = _launcher(memory, owned)
        if pod is None or pod.status.phase != "Failed" or memory.retry_at is not None:
            return ""
        if c.finished(job.status.conditions):
            return ""
        known = self._memories.part(job.metadata.uid, Tail)
        if known.pod != pod.metadata.uid:
            known.text = await self._fetch(job, pod)
            known.pod = pod.metadata.uid
        return known.text

    async def history(
        self,
        job: MPIJob,
        memory: Record,
        owned: OwnedObjects,
        decision: MPIJobDecision,
        now: datetime,
    ) -> History | None:
        """What is to be stored of the job's attempts with this decision; None: as it is."""
        known = history.read(job.metadata.annotations)
        if c.holds(decision.status.conditions, c.SUCCEEDED):
            quiet = history.without_output(known)
            return None if quiet == known else quiet
        ended = history.ended_attempt(memory, decision.record, now)
        if ended is None or (not owned.pods and not known and memory.attempt == 1):
            return None
        pod = _launcher(memory, owned)
        ended = _with_cause(ended, pod, job.workers)
        facts = attempt_facts(ended, pod, owned.pods, job.workers)
        if not log_tail.allowed(job.metadata.annotations, self._on):
            return history.with_attempt(known, log_tail.without_log_tails(ended, facts))
        unstored = self._memories.part(job.metadata.uid, Unstored)
        before = unstored.attempt
        if before is not None and before.attempt == ended.attempt and before.words:
            ended = replace(ended, words=before.words, cause=before.cause, findings=before.findings)
        else:
            sources = _log_sources(memory, owned, job.workers)
            ended = await log_tail.with_log_tails(
                self._logs, ended, sources, _environment(job), facts
            )
            unstored.attempt = ended
        return history.with_attempt(known, ended)

    async def _fetch(self, job: MPIJob, pod: Pod) -> str:
        end, summary = launcher_end(pod, job.workers)
        text, charge = end.message, ""
        if not text:
            try:
                text = _without_agent_lines(await self._logs.end(pod))
            except UnreadableLog:
                return ""
            # Some milliseconds for a long log, and many for a hostile one.
            logged = await asyncio.to_thread(launcher_log.first_cause, text.splitlines())
            charge = agent_summary.with_logged_cause(summary, logged).text
        shown = await asyncio.to_thread(redact.tail, text, _environment(job))
        return "\n".join(filter(None, (charge, shown)))


def _with_cause(ended: Attempt, pod: Pod | None, workers: int) -> Attempt:
    """With when it began, and which rank and host ended it."""
    ended = replace(ended, began=log_tail.started_at(pod))
    if pod is None:
        return ended
    ended = replace(ended, pod=pod.metadata.name)
    _, summary = launcher_end(pod, workers)
    if summary.cause is None or ended.reason == history.SUSPENDED:
        return ended
    return replace(ended, rank=summary.cause.rank, host=summary.cause.pod)


def _launcher(memory: Record, owned: OwnedObjects) -> Pod | None:
    return next((p for p in owned.launchers if attempt(p.metadata) == memory.attempt), None)


def _log_sources(memory: Record, owned: OwnedObjects, workers: int) -> list[LogSource]:
    """The launcher, and workers that failed by themselves."""
    pod = _launcher(memory, owned)
    ended = [p for p in owned.workers if p.status.phase == "Failed"]
    failed = [LogSource(p, serves=True) for p in ended][:WORKERS]
    if pod is None:
        return failed
    _, summary = launcher_end(pod, workers)
    return [LogSource(pod, ranks=log_tail.failed_ranks(summary)), *failed]


def _without_agent_lines(log: str) -> str:
    """Without the agent's lines about ranks; what it waited for stays where nothing came after."""
    lines = [line for line in log.splitlines() if not line.startswith(AGENT_LINE)]
    before = [line for line in lines[:-1] if not line.startswith(AGENT_WAITS)]
    return "\n".join((*before, *lines[-1:]))


def _environment(job: MPIJob) -> Environment:
    """Every variable that the job's templates set outright."""
    return [
        (variable.name, variable.value)
        for replica in (job.launcher, job.worker)
        for container in replica.template.view.spec.containers
        for variable in container.env
        if variable.value
    ]
