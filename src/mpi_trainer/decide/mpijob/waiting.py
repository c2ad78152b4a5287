"""How long an MPIJob may wait for its pods to run (AC-16, W-4), and what it says meanwhile.

`scheduleTimeoutSeconds` bounds nodes, volumes, devices and images alike, and nothing else does:
waiting is no failure, so it costs no attempt, and the agent's own bounds begin where this one ends.
A pod whose init containers run has all that it needs. Every attempt has the whole time to itself,
counted from the moment it may start; once it runs nothing is timed any more, so a job may also grow
and wait for its new workers.

What is waited for is told in the status after ten seconds, so that a job that starts as it should
never has such a message, and every 30 s then (SC-012). How long ago the last one was is read from
the condition itself, so nothing needs to be remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds import pod_status
from mpi_trainer.api.kinds.mpijob import MPIJob, MPIJobStatus
from mpi_trainer.decide import reasons
from mpi_trainer.decide.observed import Observed, ObservedPod
from mpi_trainer.diagnose import pod_waiting
from mpi_trainer.layout.hosts import launcher_name, worker_name

WAIT_FOR_WORKERS = "WaitForWorkersReady"
FIRST = timedelta(seconds=10)
EVERY = timedelta(seconds=30)
SETTING = "runPolicy.schedulingPolicy.scheduleTimeoutSeconds"


def launches_late(job: MPIJob) -> bool:
    """Whether the launcher is made only when all workers are ready."""
    return job.spec.launcher_creation_policy == WAIT_FOR_WORKERS


# --- how long ------------------------------------------------------------------------------------


def time_left(
    job: MPIJob, status: MPIJobStatus, observed: Observed, now: datetime
) -> timedelta | None:
    """None where there is no limit, or nothing is waited for."""
    begun = _attempt_began(status, observed)
    if not _seconds(job) or begun is None or not _late_pods(job, observed):
        return None
    return timedelta(seconds=_seconds(job)) - (now - begun)


def timeout_message(job: MPIJob, observed: Observed) -> str:
    late = _late_pods(job, observed)
    pods = {p.name: p for p in observed.pods}
    causes = [(name, _cause(pods.get(name), observed)) for name in late]
    first = pods.get(late[0])
    unplaced = first is None or not first.scheduled
    return pod_waiting.timeout_message(causes, job.workers + 1, _seconds(job), SETTING, unplaced)


def _seconds(job: MPIJob) -> int:
    policy = job.spec.run_policy.scheduling_policy
    return (policy.schedule_timeout_seconds or 0) if policy else 0


def _late_pods(job: MPIJob, observed: Observed) -> tuple[str, ...]:
    """The pods that do not run yet; a late launcher comes when the workers do."""
    begun = {p.index for p in observed.workers if p.begun}
    workers = tuple(worker_name(job.name, i) for i in range(job.workers) if i not in begun)
    launcher = observed.launcher()
    if launcher is None or launcher.begun or launches_late(job):
        return workers
    return (*workers, launcher.name)


def _attempt_began(status: MPIJobStatus, observed: Observed) -> datetime | None:
    """When the attempt began that does not run yet; None where none is under way."""
    if observed.record.retry_at is not None or c.holds(status.conditions, c.RUNNING):
        return None
    restarting = c.find(status.conditions, c.RESTARTING)
    if restarting is not None and restarting.status == c.TRUE:
        return restarting.last_update_time
    return status.start_time


# --- what is said --------------------------------------------------------------------------------


def next_message_in(
    job: MPIJob, status: MPIJobStatus, observed: Observed, now: datetime
) -> timedelta | None:
    """None where the job waits for no pod."""
    since = _since(status, observed)
    if since is None or next(_causes(job, observed), None) is None:
        return None
    running = c.find(status.conditions, c.RUNNING)
    if running is None or running.reason != reasons.WAITING or running.last_update_time is None:
        return FIRST - (now - since)
    elapsed = now - running.last_update_time
    return timedelta(0) if elapsed < timedelta(0) else EVERY - elapsed


def message(job: MPIJob, status: MPIJobStatus, observed: Observed, now: datetime) -> str:
    waited = now - (_since(status, observed) or now)
    seconds = max(int(waited / timedelta(seconds=1)), 0)
    causes = list(_causes(job, observed))
    return f"{pod_waiting.named_sentence(causes, job.workers + 1)}, after {seconds} s"


def _since(status: MPIJobStatus, observed: Observed) -> datetime | None:
    return observed.record.retry_at or _attempt_began(status, observed)


def _causes(job: MPIJob, observed: Observed) -> Iterator[tuple[str, str]]:
    """Each pod that is waited for, and why."""
    workers = {p.index: p for p in observed.workers}
    late = launches_late(job)
    for index in range(job.workers):
        why = _cause(workers.get(index), observed, must_be_ready=late)
        if why:
            yield worker_name(job.name, index), why
    leftover = next((p for p in observed.launchers if p.terminating), None)
    launcher = leftover or observed.launcher()
    if launcher is not None or not late:
        why = _cause(launcher, observed)
        if why:
            yield launcher_name(job.name), why


def _cause(pod: ObservedPod | None, observed: Observed, *, must_be_ready: bool = False) -> str:
    """Empty where the pod is as it should be."""
    if pod is None:
        return pod_waiting.absent(observed.refused)
    if pod.phase == pod_status.RUNNING and not pod.terminating and not must_be_ready:
        return ""
    return pod.wait_cause()
