"""The last words of a TrainJob's attempts (W-7): each launcher that failed, and what still ran when
the job was ended or suspended.

JobSet and its Jobs try again by themselves, so attempts are counted by what is seen of them: by
launcher pods, or, where no pod speaks for the others, by restarts and resumptions of the JobSet.
Danger: JobSet deletes the pods of an attempt as soon as it restarts; where it was quicker, that is
what is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from mpi_trainer.api.effective.combine import LAUNCHER, NODE, TRAINER, Effective
from mpi_trainer.api.effective.overrides import NODE_CONTAINER
from mpi_trainer.api.kinds.annotations import ATTEMPTS, LOG_TAIL, OFF
from mpi_trainer.api.kinds.labels import LABEL_REPLICATED_JOB, LABEL_RESTART_ATTEMPT
from mpi_trainer.api.kinds.runtime import MPI
from mpi_trainer.api.kinds.trainjob import COMPLETE, TrainJob
from mpi_trainer.controller import log_tail
from mpi_trainer.controller.log_tail import Environment, Speaker
from mpi_trainer.controller.objects import Pod
from mpi_trainer.controller.observed_pods import end_of, launcher_end, observed_pod
from mpi_trainer.controller.pod_logs import PodLogs
from mpi_trainer.controller.trainjob.pods import AllPods, PodOwners
from mpi_trainer.decide import cause_text, history, reasons
from mpi_trainer.decide.history import Attempt, History
from mpi_trainer.decide.trainjob.decision import TrainJobDecision
from mpi_trainer.decide.trainjob.observed import ObservedJobSet
from mpi_trainer.decide.trainjob.status import finished, holds

replace = msgspec.structs.replace

AT_ONCE = 3
"""attempts that one look takes up, and pods of one attempt that are heard"""
_LONG_AGO = datetime.fromtimestamp(0, UTC)


class LogTails:
    """`on` is the administrator's switch; a job can switch its own off."""

    def __init__(
        self, logs: PodLogs, all_pods: AllPods, ownership: PodOwners, on: bool = True
    ) -> None:
        self._logs = logs
        self._all_pods = all_pods
        self._ownership = ownership
        self._on = on

    async def told(
        self,
        job: TrainJob,
        whole: Effective,
        pods: Iterable[Pod],
        step: TrainJobDecision,
        now: datetime,
    ) -> str:
        """What is to be stored of the job's attempts with this step; `pods` are its own."""
        known = history.read(job.metadata.annotations)
        if holds(step.status, COMPLETE):
            return history.to_json(history.without_output(known)) or ""
        for speakers in _ended(known, whole, pods):
            known = history.with_attempt(known, await self._heard(job, whole, known, speakers, now))
        return history.to_json(known) or ""

    async def last(
        self,
        job: TrainJob,
        whole: Effective,
        job_set: ObservedJobSet,
        step: TrainJobDecision,
        now: datetime,
    ) -> str:
        """As `told`, with the attempt that runs while this step ends or suspends the job."""
        listed = await self._ownership.pods(job, job_set.uid, await self._all_pods.of(job))
        told = await self.told(job, whole, listed, step, now)
        known = history.read({ATTEMPTS: told})
        ended = finished(step.status)
        # A launcher that returned 0 is heard too where its job fails all the same.
        phases = ("Running", "Succeeded") if ended and whole.policy == MPI else ("Running",)
        heard = {one.pod for one in known}
        running = [
            pod
            for pod in _speaking(whole, listed)
            if pod.status.phase in phases
            and pod.metadata.name not in heard
            and _born(pod) >= _resumed(known)
        ][-AT_ONCE:]
        if not running:
            return told
        one = await self._heard(job, whole, known, running, now)
        reason = next((c.reason for c in step.status.conditions if c.status == "True"), "")
        one = replace(
            one,
            reason=reason if ended else history.SUSPENDED,
            message=step.annotations.cause if ended else "",
        )
        return history.to_json(history.with_attempt(known, one)) or ""

    async def _heard(
        self, job: TrainJob, whole: Effective, known: History, pods: list[Pod], now: datetime
    ) -> Attempt:
        first = pods[0]
        number = _number(known) if whole.policy == MPI else _numbered(first, known)
        one = replace(
            _blamed(first, whole),
            attempt=number,
            began=log_tail.began(first, NODE_CONTAINER),
            ended=now,
            pod=first.metadata.name,
        )
        if not self._on or job.metadata.annotations.get(LOG_TAIL) == OFF:
            return log_tail.unspoken(one)
        speakers = [_speaker(pod, whole) for pod in pods]
        return await log_tail.spoken(self._logs, one, speakers, _environment(whole))


def _ended(known: History, whole: Effective, pods: Iterable[Pod]) -> list[list[Pod]]:
    """The pods of each attempt that has failed and is not known yet, oldest first."""
    failed = [pod for pod in _speaking(whole, pods) if pod.status.phase == "Failed"]
    if whole.policy == MPI:
        # After the last that is known: of earlier ones history may have had to let go.
        heard = {one.pod for one in known}
        last = max((n for n, pod in enumerate(failed, 1) if pod.metadata.name in heard), default=0)
        return [[pod] for pod in failed[last:]][:AT_ONCE]
    numbers = {one.attempt for one in known}
    since = _resumed(known)
    groups: dict[int, list[Pod]] = {}
    for pod in failed:
        number = _numbered(pod, known)
        if number not in numbers and _born(pod) >= since:
            groups.setdefault(number, []).append(pod)
    return [group[:AT_ONCE] for _, group in sorted(groups.items())][:AT_ONCE]


def _speaking(whole: Effective, pods: Iterable[Pod]) -> list[Pod]:
    """The launchers, or where there are none the pods that train; oldest first."""
    role = LAUNCHER if whole.policy == MPI else TRAINER
    names = {one.name for one in whole.jobs if one.role == role}
    found = [pod for pod in pods if pod.metadata.labels.get(LABEL_REPLICATED_JOB) in names]
    return sorted(found, key=_born)


def _born(pod: Pod) -> datetime:
    return pod.metadata.creation_timestamp or _LONG_AGO


def _blamed(pod: Pod, whole: Effective) -> Attempt:
    """Why it ended, and whose fault that was; nothing where it runs."""
    if pod.status.phase != "Failed":
        return Attempt(0)
    seen = observed_pod(pod, pod.metadata.name, "launcher", NODE_CONTAINER)
    if whole.policy != MPI:
        ended = replace(seen, end=end_of(pod, NODE_CONTAINER))
        return Attempt(0, reasons.WORKER_FAILED, cause_text.pod_end("Pod", ended), host=seen.name)
    end, said = launcher_end(pod, whole.nodes, NODE_CONTAINER)
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
        rank=None if said.cause is None else said.cause.rank,
        host="" if said.cause is None else said.cause.pod,
    )


def _speaker(pod: Pod, whole: Effective) -> Speaker:
    if whole.policy != MPI:
        return Speaker(pod, NODE_CONTAINER)
    _, said = launcher_end(pod, whole.nodes, NODE_CONTAINER)
    return Speaker(pod, NODE_CONTAINER, log_tail.failed_ranks(said))


def _number(known: History) -> int:
    return 1 + max((one.attempt for one in known), default=0)


def _numbered(pod: Pod, known: History) -> int:
    """By the JobSet's restarts, among which it does not count that it was resumed."""
    return 1 + _restarts(pod) + len(_held(known))


def _held(known: History) -> list[Attempt]:
    """Those that a suspension has ended."""
    return [one for one in known if one.reason == history.SUSPENDED]


def _resumed(known: History) -> datetime:
    """No pod of after the last suspension is older; those that are have been heard."""
    return max((one.ended for one in _held(known) if one.ended), default=_LONG_AGO)


def _restarts(pod: Pod) -> int:
    text = pod.metadata.labels.get(LABEL_RESTART_ATTEMPT, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 8 else 0


def _environment(whole: Effective) -> Environment:
    """Every variable that the job's templates set outright."""
    return [
        (variable.name, variable.value)
        for one in whole.jobs
        if one.role in (LAUNCHER, NODE, TRAINER)
        for container in one.template.view.spec.containers
        for variable in container.env
        if variable.value
    ]
