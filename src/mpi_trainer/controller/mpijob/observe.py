"""From the objects of an MPIJob to what `decide` calls `Observed`. Pure.

What belongs to a job is proven by owner references: a pod's controller is this MPIJob, or a Job
whose controller is this MPIJob, each by uid. Labels only find candidates, and annotations prove
nothing: whoever may make pods may write both.

A launcher's end is read from its pod, which knows sooner and more than its Job; the Job speaks
only where there is no pod. The launcher of the current attempt is called `<job>-launcher`, whatever
its pod's name is, so that two passes see the same launcher.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds import pod_status
from mpi_trainer.api.kinds.annotations import WORKERS
from mpi_trainer.api.kinds.labels import LABEL_ROLE
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.controller.objects import Job, Pod
from mpi_trainer.controller.observed_pods import (
    attempt,
    foreign,
    launcher_end,
    observed_pod,
    without_words,
)
from mpi_trainer.decide import agent_summary
from mpi_trainer.decide.observed import End, Observed, ObservedPod, ObservedRank, Record
from mpi_trainer.kube.resources import JOBS, MPIJOBS, Resource
from mpi_trainer.layout.hosts import launcher_name, worker_index

replace = msgspec.structs.replace


Proof = frozenset[str]
"""uids of launcher Jobs and launcher pods that were a job's at an earlier pass"""


class OwnedObjects(msgspec.Struct, frozen=True):
    """The objects of one MPIJob; `launchers` may outlive their Job."""

    workers: tuple[Pod, ...] = ()
    launchers: tuple[Pod, ...] = ()
    job: Job | None = None

    @property
    def pods(self) -> tuple[Pod, ...]:
        return (*self.launchers, *self.workers)

    @property
    def proof(self) -> Proof:
        """What a later pass may believe of launchers whose Job is gone by then."""
        jobs = () if self.job is None else (self.job.metadata.uid,)
        return frozenset((*jobs, *(pod.metadata.uid for pod in self.launchers)))


class Observation(msgspec.Struct, frozen=True):
    """What is seen, which object each seen name stands for, and the launcher's Job, if there is
    one: no other Job is ever to be touched."""

    seen: Observed
    by_name: dict[str, Pod | Job]
    job: Job | None = None


def owned_objects(
    job: MPIJob, pods: Iterable[Pod], jobs: Iterable[Job], proven: Proof = frozenset()
) -> OwnedObjects:
    """Those of `pods` and `jobs`, all of this job's name, that belong to this very job.

    A launcher pod whose Job is gone counts only if it, or its Job, was `proven` while the Job was
    there: nothing that the pod says of itself can be believed.
    """
    own = next((j for j in jobs if _owner(j, MPIJOBS) == job.metadata.uid), None)
    believed = proven if own is None else proven | {own.metadata.uid}
    workers, launchers = [], []
    for pod in pods:
        if pod.metadata.labels.get(LABEL_ROLE) != "launcher":
            if _owner(pod, MPIJOBS) == job.metadata.uid:
                workers.append(pod)
        elif pod.metadata.uid in believed or _owner(pod, JOBS) in believed:
            launchers.append(pod)
    return OwnedObjects(tuple(workers), _followed(own, launchers), own)


def observe(job: MPIJob, record: Record, owned: OwnedObjects, tail: str | None = "") -> Observation:
    """`tail` is the end of the failed launcher's log, where it is known.

    None means that nothing that a program wrote may be shown.
    """
    by_name: dict[str, Pod | Job] = {}
    seen: list[ObservedPod] = []
    ranks: list[ObservedRank] = []
    launcher = launcher_name(job.name)
    for pod in owned.launchers:
        current = attempt(pod.metadata) == record.attempt and launcher not in by_name
        name = launcher if current else pod.metadata.name
        by_name[name] = pod
        own = owned.job if owned.job is not None and made_by(owned.job, pod) else None
        one = _launcher(pod, own, name)
        if own is not None and foreign(own.metadata):
            one = _tried_again(one, own)
        if one.ended:
            shown = without_words(pod) if tail is None else pod
            end, summary = launcher_end(shown, job.workers)
            words = (current and tail) or end.message
            reason = one.end.reason if one.foreign and one.end is not None else end.reason
            one = replace(one, end=replace(end, message=words, reason=reason))
            ranks.extend(agent_summary.observed_ranks(summary, one.attempt))
        seen.append(one)
    if owned.job is not None and not any(made_by(owned.job, pod) for pod in owned.launchers):
        name = owned.job.metadata.name
        by_name[name] = owned.job
        seen.append(_launcher_without_pod(owned.job))
    for pod in owned.workers:
        by_name[pod.metadata.name] = pod
        seen.append(_silent(_worker(job, pod)) if tail is None else _worker(job, pod))
    return Observation(
        Observed(tuple(seen), tuple(ranks), record, has_key=bool(seen)), by_name, owned.job
    )


def _owner(thing: Pod | Job, kind: Resource) -> str:
    """The uid of the object of this kind that controls it."""
    owner = thing.metadata.controller()
    return owner.uid if owner is not None and owner.of(kind) else ""


def made_by(job: Job, pod: Pod) -> bool:
    """Whether the pod is this very Job's, by uid."""
    return _owner(pod, JOBS) == job.metadata.uid


def _worker(job: MPIJob, pod: Pod) -> ObservedPod:
    seen = observed_pod(pod, pod.metadata.name, "worker")
    return replace(seen, index=worker_index(job.name, pod.metadata.name))


def _followed(job: Job | None, launchers: list[Pod]) -> tuple[Pod, ...]:
    """Another controller's Job makes one launcher pod after the other: only the last one counts."""
    if job is None or not foreign(job.metadata) or not launchers:
        return tuple(launchers)
    born = datetime.min.replace(tzinfo=UTC)
    return (max(launchers, key=lambda p: p.metadata.creation_timestamp or born),)


def _tried_again(seen: ObservedPod, job: Job) -> ObservedPod:
    """A launcher whose Job tries again by itself: it has failed when the Job has, not before."""
    failed = pod_status.condition(job.status.conditions, "Failed", "True")
    if failed is not None:
        return replace(seen, phase="Failed", end=replace(seen.end or End(), reason=failed.reason))
    if seen.phase == "Failed":
        return replace(seen, phase="Pending", end=None, exists=False, why="their Job makes another")
    return seen


def _silent(seen: ObservedPod) -> ObservedPod:
    return seen if seen.end is None else replace(seen, end=replace(seen.end, message=""))


def _launcher(pod: Pod, job: Job | None, name: str) -> ObservedPod:
    seen = observed_pod(pod, name, "launcher")
    made_for = pod.metadata.annotations.get(WORKERS, "")
    leaving = job.metadata.deletion_timestamp if job is not None else None
    return replace(
        seen,
        terminating=seen.terminating or leaving is not None,
        gone_by=seen.gone_by or leaving,
        workers=int(made_for) if made_for.isdecimal() and len(made_for) < 10 else None,
    )


def _launcher_without_pod(job: Job) -> ObservedPod:
    """The Job exists and its pod does not: not made yet, or gone after its end."""
    failed = pod_status.condition(job.status.conditions, "Failed", "True")
    done = pod_status.condition(job.status.conditions, "Complete", "True")
    phase: pod_status.Phase = "Failed" if failed else "Succeeded" if done else "Pending"
    return ObservedPod(
        name=job.metadata.name,
        role="launcher",
        uid=job.metadata.uid,
        phase=phase,
        attempt=attempt(job.metadata),
        scheduled=phase != "Pending",
        terminating=job.metadata.deletion_timestamp is not None,
        gone_by=job.metadata.deletion_timestamp,
        foreign=foreign(job.metadata),
        end=End(reason=failed.reason, message=failed.message[: bounds.MESSAGE]) if failed else None,
        exists=False,
        why="their Job has not made them; `kubectl describe job` says why",
    )
