"""The PodGroup of a job, and the marks of its pods.

`minMember` counts pods that can exist at the same time and no others: a scheduler waits for as many
to be there before it binds one, so a pod that is made only once others run must not be waited for
(docs/decisions/0045).
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from mpi_trainer.api import pod_amounts, quantities
from mpi_trainer.api.defaults import WAIT_FOR_WORKERS_READY
from mpi_trainer.api.effective.combine import Effective, ReplicatedJob
from mpi_trainer.api.kinds.labels import (
    LABEL_JOB,
    LABEL_OPERATOR,
    LABEL_TRAINJOB,
    MPI_OPERATOR,
)
from mpi_trainer.api.kinds.mpijob import MPIJob, SchedulingPolicy
from mpi_trainer.api.kinds.pods import PodSpec
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.render.frame import Facts, Object, Owner, metadata
from mpi_trainer.render.gang import coscheduling, volcano
from mpi_trainer.render.gang.model import Gang, GangSettings, PlannedGang, Scheduler

SCHEDULERS = (coscheduling.SCHEDULER, volcano.SCHEDULER)
_LARGEST = Decimal(2**63 - 1)
"""amount that Kubernetes knows"""


# --- of an MPIJob --------------------------------------------------------------------------------


def mpijob_scheduler(settings: GangSettings) -> Scheduler | None:
    """Of all MPIJobs, as the controller's flag says: `volcano`, or the name of any other scheduler,
    which is then one with the coscheduling plugin."""
    if not settings.scheduler:
        return None
    named_volcano = settings.scheduler == volcano.NAME
    return volcano.SCHEDULER if named_volcano else coscheduling.SCHEDULER


def of_mpijob(job: MPIJob, facts: Facts) -> PlannedGang | None:
    """None where gang scheduling is off, or the cluster has no PodGroups of that kind."""
    settings = facts.gang
    scheduler = mpijob_scheduler(settings)
    if scheduler is None or scheduler.group not in settings.served:
        return None
    labels = {LABEL_OPERATOR: MPI_OPERATOR, LABEL_JOB: job.name}
    return _planned(job, scheduler, _mpijob_gang(job, settings), labels, settings.scheduler)


def _mpijob_gang(job: MPIJob, settings: GangSettings) -> Gang:
    policy = job.spec.run_policy.scheduling_policy or SchedulingPolicy()
    launcher, worker = job.launcher.template.view.spec, job.worker.template.view.spec
    late = job.spec.launcher_creation_policy == WAIT_FOR_WORKERS_READY and job.workers > 0
    first = 0 if late else 1
    together = job.workers + first
    asked = together if policy.min_available is None else policy.min_available
    members = max(1, min(asked, together))
    needed = [(launcher, first), (worker, members - first)]
    given, queue = policy.min_resources, job.metadata.annotations.get(volcano.QUEUE, "")
    timeout = policy.schedule_timeout_seconds
    return Gang(
        min_member=members,
        min_resources=_written(pod_amounts.parsed(given)) if given else _resources(needed),
        queue=policy.queue or queue,
        priority_class=policy.priority_class
        or launcher.priority_class_name
        or worker.priority_class_name,
        timeout=None if timeout == settings.timeout else timeout,
    )


# --- of a TrainJob -------------------------------------------------------------------------------


def trainjob_scheduler(runtime: Runtime) -> Scheduler | None:
    """As the runtime's podGroupPolicy says."""
    policy = runtime.spec.pod_group_policy
    if policy is None:
        return None
    if policy.volcano is not None:
        return volcano.SCHEDULER
    return coscheduling.SCHEDULER if policy.coscheduling is not None else None


def of_trainjob(
    job: TrainJob, effective: Effective, runtime: Runtime, facts: Facts
) -> PlannedGang | None:
    """None where none is asked for, or the cluster has no PodGroups of that kind."""
    settings, scheduler = facts.gang, trainjob_scheduler(runtime)
    if scheduler is None or scheduler.group not in settings.served:
        return None
    named = "" if settings.scheduler == volcano.NAME else settings.scheduler
    gang = _trainjob_gang(effective, runtime)
    return _planned(job, scheduler, gang, {LABEL_TRAINJOB: job.name}, named)


def members(effective: Effective) -> tuple[ReplicatedJob, ...]:
    """Not those whose end others wait for, such as initializers: they run before the gang."""
    awaited = {name for one in effective.jobs for name in one.after}
    return tuple(one for one in effective.jobs if one.name not in awaited)


def _trainjob_gang(effective: Effective, runtime: Runtime) -> Gang:
    policy = runtime.spec.pod_group_policy
    gang = members(effective)
    counted = [(one.template.view.spec, one.count * one.replicas) for one in _at_once(effective)]
    classes = [one.template.view.spec.priority_class_name for one in gang]
    asked = policy.coscheduling if policy is not None else None
    topology = policy.volcano.network_topology if policy is not None and policy.volcano else None
    wanted: dict[str, str | int] = {}
    if topology is not None:
        wanted["mode"] = topology.mode or "hard"
        if topology.highest_tier_allowed is not None:
            wanted["highestTierAllowed"] = topology.highest_tier_allowed
    return Gang(
        min_member=max(1, sum(count for _, count in counted)),
        min_resources=_resources(counted),
        queue=effective.annotations.get(volcano.QUEUE, ""),
        priority_class=next((name for name in reversed(classes) if name), ""),
        timeout=asked.schedule_timeout_seconds if asked is not None else None,
        topology=wanted,
    )


def _at_once(effective: Effective) -> tuple[ReplicatedJob, ...]:
    """Those members whose pods JobSet makes without waiting for other members to be ready."""
    gang = members(effective)
    startup = effective.rest.get("startupPolicy") or {}
    if startup.get("startupPolicyOrder") == "InOrder":
        return gang[:1]
    names = {one.name for one in gang}
    return tuple(one for one in gang if not names & set(_waits_for(one)))


def _waits_for(one: ReplicatedJob) -> Iterable[str]:
    return (str(other.get("name")) for other in one.rest.get("dependsOn") or ())


# --- of both -------------------------------------------------------------------------------------


def _planned(
    job: Owner, scheduler: Scheduler, gang: Gang, labels: dict[str, str], named: str
) -> PlannedGang:
    name = job.metadata.name
    pod_group: Object = {
        "apiVersion": scheduler.api_version,
        "kind": "PodGroup",
        "metadata": metadata(job, name, labels=labels),
        "spec": scheduler.spec(gang),
    }
    return PlannedGang(scheduler, pod_group, scheduler.marks(name, named))


def _resources(pods: Iterable[tuple[PodSpec, int]]) -> dict[str, str]:
    parts = (pod_amounts.times(pod_amounts.requests(spec), count) for spec, count in pods)
    return _written(pod_amounts.summed(parts))


def _written(amounts: pod_amounts.Amounts) -> dict[str, str]:
    """As Go programs write them back, who would else undo what is written, and we what they do."""
    return {
        name: quantities.resource_text(name, min(amount, _LARGEST))
        for name, amount in amounts.items()
        if amount
    }
