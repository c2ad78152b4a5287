"""From a TrainJob's JobSet and pods to what `decide` calls observed. Pure.

A pod is known by its host name, which stays the same when its Job makes it anew; of several with
one host name the newest counts. `decide.agent_summary` says what the
launcher's termination message proves of ranks. Whose a pod is, owner references alone say (`pods`).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from mpi_trainer.api.effective.combine import LAUNCHER
from mpi_trainer.api.effective.overrides import NODE_CONTAINER
from mpi_trainer.api.kinds.annotations import RENDERED, RUNTIME_SNAPSHOT
from mpi_trainer.api.kinds.labels import LABEL_REPLICATED_JOB
from mpi_trainer.api.kinds.trainjob import TrainJobCondition
from mpi_trainer.controller.objects import JobSet, Pod
from mpi_trainer.controller.observed_pods import launcher_end, observed_pod
from mpi_trainer.decide import agent_summary
from mpi_trainer.decide.observed import Observed, ObservedPod, ObservedRank
from mpi_trainer.decide.trainjob.observed import ObservedJobSet
from mpi_trainer.decide.trainjob.status_annotations import placement
from mpi_trainer.kube.resources import TRAINJOBS


class Observation(msgspec.Struct, frozen=True):
    seen: Observed = Observed()
    placement: str = ""


def observed_job_set(found: JobSet | None, uid: str) -> ObservedJobSet | None:
    """What is seen of the JobSet of the job with this uid; None where it is another's."""
    owner = found.metadata.controller() if found is not None else None
    if found is None or owner is None or owner.uid != uid or not owner.of(TRAINJOBS):
        return None
    return ObservedJobSet(
        uid=found.metadata.uid,
        suspended=found.spec.suspend,
        terminating=found.metadata.deletion_timestamp is not None,
        rendered=found.metadata.annotations.get(RENDERED, ""),
        runtime=found.metadata.annotations.get(RUNTIME_SNAPSHOT, ""),
        jobs=found.status.replicated_jobs_status,
        completed=_condition(found, "Completed"),
        failed=_condition(found, "Failed"),
    )


def _condition(found: JobSet, kind: str) -> TrainJobCondition | None:
    true = (one for one in found.status.conditions if one.status == "True")
    return next((one for one in true if one.type == kind), None)


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
