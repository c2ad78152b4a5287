"""How a pod ended: which container decided it, with what code, and for what reason. Pure.

What a program wrote is shown only after `redact` has seen it. A launcher under the agent's care
leaves a summary instead of words; what that proves of the ranks is `testimony`.
"""

from __future__ import annotations

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.controller import redact
from mpi_trainer.controller.objects import ContainerStatus, Pod, Terminated
from mpi_trainer.decide import End, agent_summary
from mpi_trainer.layout.agent.summary import Summary, most_ranks, parse

replace = msgspec.structs.replace

# What the kubelet says of any exit; the code says it better.
_NO_REASON = frozenset({"Error", "Completed"})


def end_of(pod: Pod, main: str = "") -> End:
    """The end of a pod that has ended: its main container's, unless another one is to blame.

    `main` is that container's name; "" is the first.
    """
    status = pod.status
    if status.phase == "Succeeded":
        return End(code=0)
    main = main or _first(pod)
    culprit = _culprit(pod, main)
    if culprit is None:
        return End(reason=status.reason, message=status.message[: bounds.MESSAGE])
    name, ended = culprit
    reason = status.reason or ("" if ended.reason in _NO_REASON else ended.reason)
    message = status.message[: bounds.MESSAGE] or redact.words(ended.message)
    if main and name != main:
        message = f"container {name}: {message}".removesuffix(": ")
    return End(code=ended.exit_code, reason=reason, message=message)


def launcher_end(pod: Pod, pods: int, main: str = "") -> tuple[End, Summary]:
    """The end of the launcher of so many pods, in the agent's words where it had an agent."""
    words = _last_words(pod, main or _first(pod))[: bounds.TERMINATION_MESSAGE]
    said = parse(words, most_ranks(pods))
    ended = agent_summary.end(end_of(pod, main), said)
    return replace(ended, message=redact.words(ended.message)), said


def _first(pod: Pod) -> str:
    return pod.spec.containers[0].name if pod.spec.containers else ""


def _last_words(pod: Pod, main: str) -> str:
    """The termination message of the container that we fill."""
    found = (c.state.terminated for c in pod.status.container_statuses if c.name == main)
    return next((ended.message for ended in found if ended is not None), "")


def _culprit(pod: Pod, main: str) -> tuple[str, Terminated] | None:
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
