"""How long a TrainJob may wait for its pods to run (AC-16, W-4), and what it says meanwhile.

Its kind has no field for it, so an annotation of the job or of its runtime stands for one, and else
the administrator's default. As for MPIJobs it bounds nodes, volumes, devices and images, and costs
no attempt; but it counts from the last time that anything of the job went forward, since nodes may
wait for initializers, and a launcher for nodes. A job that has run is not timed any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from mpi_trainer.api.kinds import pod_status
from mpi_trainer.api.kinds.annotations import SCHEDULE_TIMEOUT, seconds
from mpi_trainer.decide.observed import ObservedPod
from mpi_trainer.decide.trainjob.observed import ObservedTrainJob
from mpi_trainer.diagnose import pod_waiting

SETTING = f"the annotation {SCHEDULE_TIMEOUT} of the job or its runtime"


# --- how long ------------------------------------------------------------------------------------


def time_left(
    annotations: Mapping[str, str], observed: ObservedTrainJob, waited: timedelta
) -> timedelta | None:
    """None where there is no limit, or nothing is waited for that could be seen."""
    limit = _seconds(annotations, observed)
    return timedelta(seconds=limit) - waited if limit and _waits(observed) else None


def timeout_message(annotations: Mapping[str, str], observed: ObservedTrainJob) -> str:
    limit, late = _seconds(annotations, observed), _late_pods(observed)
    if late:
        causes = [(pod.name, pod.wait_cause()) for pod in late]
        wanted, unplaced = len(observed.pods.pods), not late[0].scheduled
        return pod_waiting.timeout_message(causes, wanted, limit, SETTING, unplaced)
    why = pod_waiting.short(observed.problem) or "no pod was made; `kubectl describe job` says why"
    return f"Not all pods ran within {limit} s: {why}; see to the cause, or raise {SETTING}."


def _seconds(annotations: Mapping[str, str], observed: ObservedTrainJob) -> int:
    """The seconds that the job's pods have, 0 without limit."""
    given = (annotations, observed.runtime_annotations)
    chosen = (seconds(one.get(SCHEDULE_TIMEOUT, "")) for one in given)
    return next((one for one in chosen if one is not None), observed.schedule_timeout)


def _waits(observed: ObservedTrainJob) -> bool:
    """Whether pods are there that do not run, or none at all although JobSet has counts of the job:
    an initializer that runs is one that does, and what comes after it is not late."""
    if observed.job_set is None:
        return bool(observed.problem)
    if not observed.all_pods:
        return False
    return bool(_late_pods(observed)) if observed.pods.pods else bool(observed.job_set.jobs)


def _late_pods(observed: ObservedTrainJob) -> list[ObservedPod]:
    return [p for p in observed.pods.pods if not p.begun and not p.terminating]


# --- what is said --------------------------------------------------------------------------------


def message(observed: ObservedTrainJob) -> str:
    """Of those pods whose scheduler or kubelet says something, first of those that do not run at
    all; empty where there is none."""
    ordered = sorted(observed.pods.pods, key=lambda p: p.begun)
    causes = [(pod.name, pod.wait_cause()) for pod in ordered if _is_held_up(pod)]
    return pod_waiting.named_sentence(causes, len(ordered)) if causes else ""


def _is_held_up(pod: ObservedPod) -> bool:
    if pod.phase == pod_status.RUNNING:
        return not pod.ready and not pod.terminating
    return pod.phase == pod_status.PENDING and bool(pod.why or pod.waiting)
