"""A pod of either kind of job as `decide` sees it, and how it ended. Pure.

An end says which container decided it, with what code, and for what reason. What a program wrote is
shown only after `redact` has seen it. A launcher that the agent runs leaves a summary as its
termination message; `decide.agent_summary` says what that proves of the ranks.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds import pod_status
from mpi_trainer.api.kinds.annotations import ATTEMPT
from mpi_trainer.api.kinds.pod_status import Condition, ContainerStatus, Terminated
from mpi_trainer.controller import redact
from mpi_trainer.controller.objects import Pod
from mpi_trainer.decide import agent_summary
from mpi_trainer.decide.observed import End, ObservedPod
from mpi_trainer.diagnose import agent_facts
from mpi_trainer.layout.agent import summary as agent_text
from mpi_trainer.layout.agent.summary import Summary, most_ranks
from mpi_trainer.runtime.partial import Meta

replace = msgspec.structs.replace

_PHASES: dict[str, pod_status.Phase] = {
    pod_status.PENDING: pod_status.PENDING,
    pod_status.SUCCEEDED: pod_status.SUCCEEDED,
    pod_status.FAILED: pod_status.FAILED,
    "": pod_status.PENDING,
}

_FOLLOWS = (". preemption:", ". no new claims to deallocate")


def attempt(meta: Meta) -> int:
    """Which attempt of its MPIJob a pod or Job belongs to."""
    text = meta.annotations.get(ATTEMPT, "")
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else 1


def foreign(meta: Meta) -> bool:
    """Whether another controller made it: ours says of each which attempt it belongs to."""
    return ATTEMPT not in meta.annotations


def observed_pod(
    pod: Pod, name: str, role: Literal["launcher", "worker"], main: str = ""
) -> ObservedPod:
    """A pod of any kind of job; `main` is its container that runs the job, "" the first."""
    status = pod.status
    phase = _PHASES.get(status.phase, pod_status.RUNNING)
    disruption = pod_status.condition(status.conditions, pod_status.DISRUPTION_TARGET, "True")
    ended = phase in pod_status.ENDED
    waiting, why = ("", "") if ended else _waits(pod, disruption)
    return ObservedPod(
        name=name,
        role=role,
        uid=pod.metadata.uid,
        phase=phase,
        attempt=attempt(pod.metadata),
        ready=pod_status.condition(status.conditions, pod_status.READY, "True") is not None,
        scheduled=bool(pod.spec.node_name),
        preparing=phase == pod_status.PENDING and _prepares(pod),
        terminating=pod.metadata.deletion_timestamp is not None,
        end=end_of(pod, main) if ended else None,
        why=why,
        waiting=waiting,
        disrupted=disruption is not None or status.reason in pod_status.DISRUPTIONS,
        started=_started(pod, main),
        gone_by=pod.metadata.deletion_timestamp,
        foreign=foreign(pod.metadata),
    )


def _prepares(pod: Pod) -> bool:
    states = (one.state for one in pod.status.init_container_statuses)
    return any(state.running or state.terminated for state in states)


def _started(pod: Pod, main: str) -> datetime | None:
    for one in pod.status.container_statuses:
        state = one.state.running or one.state.terminated
        if state is not None and main in ("", one.name):
            return state.started_at
    return None


def _waits(pod: Pod, disruption: Condition | None) -> tuple[str, str]:
    """The kubelet's reason for a container that waits, and what the scheduler, the kubelet or the
    evictor says of a pod that does not run as wanted."""
    if disruption is not None:
        return "", (disruption.message or disruption.reason)[: bounds.MESSAGE]
    unplaced = pod_status.condition(pod.status.conditions, pod_status.POD_SCHEDULED, "False")
    if unplaced is not None:
        return "", _of_scheduler(unplaced.message or unplaced.reason)[: bounds.MESSAGE]
    for one in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = one.state.waiting
        if waiting is not None and waiting.reason not in ("", pod_status.INITIALIZING):
            return waiting.reason, waiting.message[: bounds.MESSAGE]
    return "", ""


def _of_scheduler(text: str) -> str:
    """Without what follows from it: that nobody can be made to give way."""
    for mark in _FOLLOWS:
        text = text.partition(mark)[0]
    return text


def end_of(pod: Pod, main: str = "") -> End:
    """The end of a pod that has ended: its main container's, unless another one failed first.

    `main` is that container's name; "" is the first.
    """
    status = pod.status
    if status.phase == pod_status.SUCCEEDED:
        return End(code=0)
    main = main or _first(pod)
    container = _ended_container(pod, main)
    if container is None:
        return End(reason=status.reason, message=status.message[: bounds.MESSAGE])
    name, ended = container
    reason = status.reason or ("" if ended.reason in pod_status.EXITED else ended.reason)
    message = status.message[: bounds.MESSAGE] or redact.termination_message(ended.message)
    if main and name != main:
        message = f"container {name}: {message}".removesuffix(": ")
    return End(code=ended.exit_code, reason=reason, message=message)


def launcher_end(pod: Pod, pods: int, main: str = "") -> tuple[End, Summary]:
    """The end of the launcher of so many pods, in the agent's words where it had an agent."""
    message = _termination_message(pod, main or _first(pod))[: bounds.TERMINATION_MESSAGE]
    summary = agent_facts.read(message, most_ranks(pods))
    ended = agent_summary.launcher_end(end_of(pod, main), summary)
    return replace(ended, message=redact.termination_message(ended.message)), summary


def without_words(pod: Pod) -> Pod:
    """Without what its programs wrote; of the agent's summary the facts are left."""
    status = pod.status
    if not any(one.state.terminated for one in _containers(pod)):
        return pod
    init, own = status.init_container_statuses, status.container_statuses
    quiet = replace(
        status,
        init_container_statuses=tuple(map(_wordless, init)),
        container_statuses=tuple(map(_wordless, own)),
    )
    return replace(pod, status=quiet)


def _containers(pod: Pod) -> tuple[ContainerStatus, ...]:
    return (*pod.status.init_container_statuses, *pod.status.container_statuses)


def _wordless(one: ContainerStatus) -> ContainerStatus:
    ended = one.state.terminated
    if ended is None or not ended.message:
        return one
    left = replace(ended, message=agent_text.without_words(ended.message))
    return replace(one, state=replace(one.state, terminated=left))


def _first(pod: Pod) -> str:
    return pod.spec.containers[0].name if pod.spec.containers else ""


def _termination_message(pod: Pod, main: str) -> str:
    """The termination message of the container that we fill."""
    found = (c.state.terminated for c in pod.status.container_statuses if c.name == main)
    return next((ended.message for ended in found if ended is not None), "")


def _ended_container(pod: Pod, main: str) -> tuple[str, Terminated] | None:
    ended = [
        (one.name, one.state.terminated)
        for one in _main_first(pod, main)
        if one.state.terminated is not None
    ]
    return next((e for e in ended if e[1].exit_code), ended[0] if ended else None)


def _main_first(pod: Pod, main: str) -> list[ContainerStatus]:
    status = pod.status
    plain = sorted(status.container_statuses, key=lambda c: c.name != main)
    return [*plain, *status.init_container_statuses]
