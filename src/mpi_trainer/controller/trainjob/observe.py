"""From a TrainJob's pods to what `decide` calls `Observed`. Pure.

A pod is known by its host name, which stays the same when its Job makes it anew; of several with
one host name the newest counts. `decide.agent_summary` says what the
launcher's termination message proves of ranks. Whose a pod is, owner references alone say (`pods`).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from mpi_trainer.api.effective.combine import LAUNCHER
from mpi_trainer.api.effective.overrides import NODE_CONTAINER
from mpi_trainer.api.kinds.labels import LABEL_REPLICATED_JOB
from mpi_trainer.controller.objects import Pod
from mpi_trainer.controller.observed_pods import launcher_end, observed_pod
from mpi_trainer.decide import agent_summary
from mpi_trainer.decide.observed import Observed, ObservedPod, ObservedRank
from mpi_trainer.decide.trainjob.status_annotations import placement


class Observation(msgspec.Struct, frozen=True):
    seen: Observed = Observed()
    placement: str = ""


def observe(pods: Iterable[Pod], mpi: bool, nodes: int) -> Observation:
    """All `pods` are the job's own; `mpi`: one of them may be a launcher, of `nodes`."""
    newest: dict[str, Pod] = {}
    for pod in pods:
        before = newest.get(_name(pod))
        if before is None or _born(before) <= _born(pod):
            newest[_name(pod)] = pod
    found: list[ObservedPod] = []
    ranks: tuple[ObservedRank, ...] = ()
    where = ""
    for name, pod in sorted(newest.items()):
        is_launcher = mpi and pod.metadata.labels.get(LABEL_REPLICATED_JOB) == LAUNCHER
        one = observed_pod(pod, name, "launcher" if is_launcher else "worker", NODE_CONTAINER)
        if is_launcher and one.ended:
            end, summary = launcher_end(pod, nodes, NODE_CONTAINER)
            one = msgspec.structs.replace(one, end=end)
            ranks, where = agent_summary.observed_ranks(summary, one.attempt), placement(summary)
        found.append(one)
    return Observation(Observed(tuple(found), ranks), where)


def _name(pod: Pod) -> str:
    return pod.spec.hostname or pod.metadata.name


def _born(pod: Pod) -> float:
    made = pod.metadata.creation_timestamp
    return made.timestamp() if made is not None else 0.0
