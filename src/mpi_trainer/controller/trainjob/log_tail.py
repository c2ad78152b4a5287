"""The ends of the logs of a TrainJob's attempts (W-7): of each launcher that failed, and of what
still ran when the job was ended or suspended.

JobSet and its Jobs try again by themselves, so attempts are counted by what is seen of them: by
launcher pods, or, where there is no launcher, by restarts and resumptions of the JobSet.
Danger: JobSet deletes the pods of an attempt as soon as it restarts; a log that was gone by then is
stored as such.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from mpi_trainer.api.effective.combine import LAUNCHER, NODE, TRAINER, Effective
from mpi_trainer.api.effective.overrides import NODE_CONTAINER
from mpi_trainer.api.kinds.annotations import ATTEMPTS
from mpi_trainer.api.kinds.labels import LABEL_REPLICATED_JOB, restart_attempt
from mpi_trainer.api.kinds.runtime import MPI
from mpi_trainer.api.kinds.trainjob import COMPLETE, TrainJob
from mpi_trainer.controller import log_tail
from mpi_trainer.controller.findings import attempt_facts
from mpi_trainer.controller.log_tail import Environment, LogSource
from mpi_trainer.controller.objects import Pod
from mpi_trainer.controller.observed_pods import (
    end_of,
    launcher_end,
    observed_pod,
    without_words,
)
from mpi_trainer.controller.pod_logs import PodLogs
from mpi_trainer.controller.trainjob.pods import AllPods, PodOwners
from mpi_trainer.decide import cause_text, history, reasons
from mpi_trainer.decide.history import Attempt, History
from mpi_trainer.decide.trainjob.decision import TrainJobDecision
from mpi_trainer.decide.trainjob.observed import ObservedJobSet
from mpi_trainer.decide.trainjob.status import finished, holds

replace = msgspec.structs.replace

AT_ONCE = 3
"""attempts that one pass takes up, and pods of one attempt whose logs are read"""
_LONG_AGO = datetime.fromtimestamp(0, UTC)


class _Ended(msgspec.Struct, frozen=True):
    """An attempt that is over: why, the pods whose logs are read, and all pods of the job."""

    why: Attempt
    pods: list[Pod]
    others: tuple[Pod, ...]


class LogTails:
    """`on` is the administrator's switch; a job can switch its own off."""

    def __init__(
        self, logs: PodLogs, all_pods: AllPods, pod_owners: PodOwners, on: bool = True
    ) -> None:
        self._logs = logs
        self._all_pods = all_pods
        self._pod_owners = pod_owners
        self._on = on

    def shown(self, job: TrainJob, pods: Iterable[Pod]) -> tuple[Pod, ...]:
        """The pods with as much of what their programs wrote as may be shown."""
        on = log_tail.allowed(job.metadata.annotations, self._on)
        return tuple(pods) if on else tuple(map(without_words, pods))

    async def history(
        self,
        job: TrainJob,
        effective: Effective,
        pods: Iterable[Pod],
        decision: TrainJobDecision,
        now: datetime,
    ) -> str:
        """What is to be stored of the job's attempts with this decision; `pods` are its own."""
        known = history.read(job.metadata.annotations)
        if holds(decision.status, COMPLETE):
            return history.to_json(history.without_output(known)) or ""
        pods = tuple(pods)
        for group in _ended(known, effective, pods):
            why = _cause(group[0], effective)
            one = await self._attempt(job, effective, known, _Ended(why, group, pods), now)
            known = history.with_attempt(known, one)
        return history.to_json(known) or ""

    async def history_at_end(
        self,
        job: TrainJob,
        effective: Effective,
        job_set: ObservedJobSet,
        decision: TrainJobDecision,
        now: datetime,
    ) -> str:
        """As `history`, with the attempt that runs while this decision ends or suspends the job."""
        listed = await self._pod_owners.owned(job, job_set.uid, await self._all_pods.listed(job))
        listed = self.shown(job, listed)
        stored = await self.history(job, effective, listed, decision, now)
        known = history.read({ATTEMPTS: stored})
        ended = finished(decision.status)
        # The log of a launcher that returned 0 is read too where its job fails all the same.
        phases = ("Running", "Succeeded") if ended and effective.policy == MPI else ("Running",)
        stored_pods = {one.pod for one in known}
        running = [
            pod
            for pod in _log_pods(effective, listed)
            if pod.status.phase in phases
            and pod.metadata.name not in stored_pods
            and _born(pod) >= _resumed(known)
        ][-AT_ONCE:]
        if not running:
            return stored
        reason = next((c.reason for c in decision.status.conditions if c.status == "True"), "")
        why = replace(
            _cause(running[0], effective),
            reason=reason if ended else history.SUSPENDED,
            message=decision.annotations.cause if ended else "",
        )
        one = await self._attempt(job, effective, known, _Ended(why, running, listed), now)
        return history.to_json(history.with_attempt(known, one)) or ""

    async def _attempt(
        self, job: TrainJob, effective: Effective, known: History, ended: _Ended, now: datetime
    ) -> Attempt:
        first = ended.pods[0]
        number = _number(known) if effective.policy == MPI else _numbered(first, known)
        one = replace(
            ended.why,
            attempt=number,
            began=log_tail.started_at(first, NODE_CONTAINER),
            ended=now,
            pod=first.metadata.name,
        )
        launcher = first if effective.policy == MPI else None
        same = [pod for pod in ended.others if _restart(pod) == _restart(first)]
        facts = attempt_facts(one, launcher, same, effective.nodes, NODE_CONTAINER)
        if not log_tail.allowed(job.metadata.annotations, self._on):
            return log_tail.without_log_tails(one, facts)
        sources = [_log_source(pod, effective) for pod in ended.pods]
        return await log_tail.with_log_tails(
            self._logs, one, sources, _environment(effective), facts
        )


def _ended(known: History, effective: Effective, pods: Iterable[Pod]) -> list[list[Pod]]:
    """The pods of each attempt that has failed and is not known yet, oldest first."""
    failed = [pod for pod in _log_pods(effective, pods) if pod.status.phase == "Failed"]
    if effective.policy == MPI:
        # After the last that is known: history may have dropped earlier ones.
        stored_pods = {one.pod for one in known}
        last = max(
            (n for n, pod in enumerate(failed, 1) if pod.metadata.name in stored_pods), default=0
        )
        return [[pod] for pod in failed[last:]][:AT_ONCE]
    numbers = {one.attempt for one in known}
    since = _resumed(known)
    groups: dict[int, list[Pod]] = {}
    for pod in failed:
        number = _numbered(pod, known)
        if number not in numbers and _born(pod) >= since:
            groups.setdefault(number, []).append(pod)
    return [group[:AT_ONCE] for _, group in sorted(groups.items())][:AT_ONCE]


def _log_pods(effective: Effective, pods: Iterable[Pod]) -> list[Pod]:
    """The launchers, or where there are none the pods that train; oldest first."""
    role = LAUNCHER if effective.policy == MPI else TRAINER
    names = {one.name for one in effective.jobs if one.role == role}
    found = [pod for pod in pods if pod.metadata.labels.get(LABEL_REPLICATED_JOB) in names]
    return sorted(found, key=_born)


def _born(pod: Pod) -> datetime:
    return pod.metadata.creation_timestamp or _LONG_AGO


def _cause(pod: Pod, effective: Effective) -> Attempt:
    """Why it ended, and which rank and host ended it; nothing where it runs."""
    if pod.status.phase != "Failed":
        return Attempt(0)
    seen = observed_pod(pod, pod.metadata.name, "launcher", NODE_CONTAINER)
    if effective.policy != MPI:
        ended = replace(seen, end=end_of(pod, NODE_CONTAINER))
        return Attempt(0, reasons.WORKER_FAILED, cause_text.pod_end("Pod", ended), host=seen.name)
    end, summary = launcher_end(pod, effective.nodes, NODE_CONTAINER)
    of_agent = end.reason in reasons.OF_AGENT
    text = (
        cause_text.agent_verdict(end)
        if of_agent
        else cause_text.pod_end("Launcher", replace(seen, end=end))
    )
    return Attempt(
        0,
        end.reason if of_agent else reasons.LAUNCHER_FAILED,
        text,
        rank=None if summary.cause is None else summary.cause.rank,
        host="" if summary.cause is None else summary.cause.pod,
    )


def _log_source(pod: Pod, effective: Effective) -> LogSource:
    if effective.policy != MPI:
        return LogSource(pod, NODE_CONTAINER)
    _, summary = launcher_end(pod, effective.nodes, NODE_CONTAINER)
    return LogSource(pod, NODE_CONTAINER, log_tail.failed_ranks(summary))


def _number(known: History) -> int:
    return 1 + max((one.attempt for one in known), default=0)


def _numbered(pod: Pod, known: History) -> int:
    """By the JobSet's restarts, among which it does not count that it was resumed."""
    return 1 + _restart(pod) + len(_held(known))


def _restart(pod: Pod) -> int:
    return restart_attempt(pod.metadata.labels)


def _held(known: History) -> list[Attempt]:
    """Those that a suspension has ended."""
    return [one for one in known if one.reason == history.SUSPENDED]


def _resumed(known: History) -> datetime:
    """No pod of after the last suspension is older; the logs of older ones are stored."""
    return max((one.ended for one in _held(known) if one.ended), default=_LONG_AGO)


def _environment(effective: Effective) -> Environment:
    """Every variable that the job's templates set outright."""
    return [
        (variable.name, variable.value)
        for one in effective.jobs
        if one.role in (LAUNCHER, NODE, TRAINER)
        for container in one.template.view.spec.containers
        for variable in container.env
        if variable.value
    ]
