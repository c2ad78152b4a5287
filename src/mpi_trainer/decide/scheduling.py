"""`scheduleTimeoutSeconds`: how long a job may wait for all its pods to run (AC-16, W-4).

Nodes, volumes, devices and images alike are waited for within it, and only by it: waiting is no
failure, so it costs no attempt, and the agent's own bounds begin where this one ends. A pod whose
init containers run has all that it needs.

Every attempt has the whole time to itself, counted from the moment it may start: a worker that is
replaced after hours of running is no reason to call the job unschedulable. Once the attempt runs
nothing is timed any more, so a job may also grow and wait for its new workers.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.mpijob import MPIJob, MPIJobStatus
from mpi_trainer.decide.observed import Observed

WAIT_FOR_WORKERS = "WaitForWorkersReady"
_LONGEST_CAUSE = 300
_REMEDIES = {
    True: "ask for fewer or smaller workers, free resources,",
    False: "see to what they wait for,",
}


def launches_late(job: MPIJob) -> bool:
    return job.spec.launcher_creation_policy == WAIT_FOR_WORKERS


def missing(job: MPIJob, seen: Observed) -> tuple[str, ...]:
    """The pods that do not run yet; a late launcher comes when the workers do."""
    begun = {p.index for p in seen.workers if p.begun}
    workers = tuple(f"{job.name}-worker-{i}" for i in range(job.workers) if i not in begun)
    launcher = seen.launcher()
    if launcher is None or launcher.begun or launches_late(job):
        return workers
    return (*workers, launcher.name)


def remaining(job: MPIJob, status: MPIJobStatus, seen: Observed, now: datetime) -> timedelta | None:
    policy = job.spec.run_policy.scheduling_policy
    seconds = policy.schedule_timeout_seconds if policy else None
    begun = since(status, seen)
    if not seconds or begun is None or not missing(job, seen):
        return None
    return timedelta(seconds=seconds) - (now - begun)


def since(status: MPIJobStatus, seen: Observed) -> datetime | None:
    """When the attempt began that does not run yet; None where none is under way."""
    if seen.record.retry_at is not None or c.holds(status.conditions, c.RUNNING):
        return None
    restarting = c.find(status.conditions, c.RESTARTING)
    if restarting is not None and restarting.status == c.TRUE:
        return restarting.last_update_time
    return status.start_time


def message(job: MPIJob, seen: Observed) -> str:
    policy = job.spec.run_policy.scheduling_policy
    seconds = policy.schedule_timeout_seconds if policy else 0
    waiting = missing(job, seen)
    first = next((p for p in seen.pods if p.name == waiting[0]), None)
    why = (first.why if first is not None else "") or seen.refused
    said = f": {why[:_LONGEST_CAUSE].rstrip('.')}" if why else ""
    placeless = first is None or not first.scheduled
    what = "found no place" if placeless else "did not start"
    return (
        f"{len(waiting)} of {job.workers + 1} pods {what} within {seconds} s "
        f"(first: {waiting[0]}{said}); {_REMEDIES[placeless]} "
        "or raise runPolicy.schedulingPolicy.scheduleTimeoutSeconds."
    )
