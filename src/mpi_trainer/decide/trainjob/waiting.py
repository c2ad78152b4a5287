"""How long a TrainJob may wait for its pods to run (AC-16, W-4), and what it says meanwhile.

Its kind has no field for it, so an annotation of the job or of its runtime stands for one, and else
the administrator's default. As for MPIJobs it bounds nodes, volumes, devices and images, and costs
no attempt; but it counts from the last time that anything of the job went forward, since nodes may
wait for initializers, and a launcher for nodes. A job that has run is not timed any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from mpi_trainer.api.kinds.annotations import SCHEDULE_TIMEOUT, seconds
from mpi_trainer.decide.observed import ObservedPod
from mpi_trainer.decide.trainjob.observed import ObservedTrainJob

_LONGEST_CAUSE = 300


def allowed(annotations: Mapping[str, str], seen: ObservedTrainJob) -> int:
    """The seconds that the job's pods have, 0 without end."""
    asked = (
        seconds(given.get(SCHEDULE_TIMEOUT, ""))
        for given in (annotations, seen.runtime_annotations)
    )
    return next((chosen for chosen in asked if chosen is not None), seen.schedule_timeout)


def left(
    annotations: Mapping[str, str], seen: ObservedTrainJob, waited: timedelta
) -> timedelta | None:
    """None where nothing is waited for that could be seen, or for as long as it takes."""
    limit = allowed(annotations, seen)
    return timedelta(seconds=limit) - waited if limit and _waits(seen) else None


def message(annotations: Mapping[str, str], seen: ObservedTrainJob) -> str:
    late = _late(seen)
    first = f"{late[0].name}: {late[0].why or 'no cause is known'}" if late else seen.problem
    first = first or "no pod was made; `kubectl describe job` says why"
    count = f"{len(late)} of {len(seen.pods.pods)} pods" if late else "its pods"
    return (
        f"{count} did not run within {allowed(annotations, seen)} s "
        f"({first[:_LONGEST_CAUSE].rstrip('.')}); see to what is missing, or raise the annotation "
        f"{SCHEDULE_TIMEOUT} of the job or its runtime."
    )


def told(seen: ObservedTrainJob) -> str:
    """What the scheduler and the kubelets say, first of those that do not run at all."""
    ordered = sorted(seen.pods.pods, key=lambda p: p.begun)
    stuck = [(p.name, why) for p in ordered if (why := _hindrance(p))]
    if not stuck:
        return ""
    more = f" (and {len(stuck) - 1} more)" if len(stuck) > 1 else ""
    name, why = stuck[0]
    return f"{name}{more}: {why}"


def _hindrance(pod: ObservedPod) -> str:
    if pod.phase == "Running" and not pod.ready:
        return pod.why or "it runs, but is not ready"
    return pod.why if pod.phase == "Pending" else ""


def _waits(seen: ObservedTrainJob) -> bool:
    """Whether pods are there that do not run, or none at all where JobSet has looked at the job: an
    initializer that runs is one that does, and what comes after it is not late."""
    if seen.job_set is None:
        return bool(seen.problem)
    if not seen.all_pods:
        return False
    return bool(_late(seen)) if seen.pods.pods else bool(seen.job_set.jobs)


def _late(seen: ObservedTrainJob) -> list[ObservedPod]:
    return [p for p in seen.pods.pods if not p.begun and not p.terminating]
