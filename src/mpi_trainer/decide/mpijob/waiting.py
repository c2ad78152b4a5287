"""What a job that does not run yet waits for, told in its status every 30 s (AC-16, SC-012).

The words are the scheduler's and the kubelet's own, since they know best what is missing. The
first message comes after ten seconds: a job that starts as it should never has one. How long ago
the last message was is read from the condition itself, so nothing needs to be remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.mpijob import MPIJob, MPIJobStatus
from mpi_trainer.decide import reasons, scheduling
from mpi_trainer.decide.observed import Observed, ObservedPod

FIRST = timedelta(seconds=10)
EVERY = timedelta(seconds=30)

_CAUSES_TOLD = 3
_LONGEST_CAUSE = 300


def remaining(job: MPIJob, status: MPIJobStatus, seen: Observed, now: datetime) -> timedelta | None:
    """Time until the next message; None where the job waits for no pod."""
    since = _since(status, seen)
    if since is None or next(_waits(job, seen), None) is None:
        return None
    told = c.find(status.conditions, c.RUNNING)
    if told is None or told.reason != reasons.WAITING or told.last_update_time is None:
        return FIRST - (now - since)
    elapsed = now - told.last_update_time
    return timedelta(0) if elapsed < timedelta(0) else EVERY - elapsed


def message(job: MPIJob, status: MPIJobStatus, seen: Observed, now: datetime) -> str:
    causes: dict[str, list[str]] = {}
    for name, why in _waits(job, seen):
        causes.setdefault(why[:_LONGEST_CAUSE], []).append(name)
    count = sum(len(names) for names in causes.values())
    parts = [f"{_several(names)}: {why}" for why, names in list(causes.items())[:_CAUSES_TOLD]]
    if len(causes) > _CAUSES_TOLD:
        parts.append(f"and {len(causes) - _CAUSES_TOLD} other causes")
    waited = now - (_since(status, seen) or now)
    seconds = max(int(waited / timedelta(seconds=1)), 0)
    return f"{count} of {job.workers + 1} pods do not run after {seconds} s; {'; '.join(parts)}"


def _since(status: MPIJobStatus, seen: Observed) -> datetime | None:
    return seen.record.retry_at or scheduling.since(status, seen)


def _waits(job: MPIJob, seen: Observed) -> Iterator[tuple[str, str]]:
    """Each pod that is waited for, and why."""
    workers = {p.index: p for p in seen.workers}
    late = scheduling.launches_late(job)
    for index in range(job.workers):
        why = _why(workers.get(index), seen, late)
        if why:
            yield f"{job.name}-worker-{index}", why
    leftover = next((p for p in seen.launchers if p.terminating), None)
    launcher = leftover or seen.launcher()
    if launcher is not None or not late:
        why = _why(launcher, seen, False)
        if why:
            yield f"{job.name}-launcher", why


def _why(pod: ObservedPod | None, seen: Observed, must_be_ready: bool) -> str:
    """Empty where the pod is as it should be."""
    if pod is None:
        return seen.refused or "not made yet"
    if pod.terminating:
        return f"being deleted, which its node has not confirmed ({pod.why})".replace(" ()", "")
    if pod.phase == "Pending":
        return pod.why or ("starting" if pod.scheduled else "no node yet")
    if must_be_ready and pod.phase == "Running" and not pod.ready:
        return pod.why or "not ready"
    return ""


def _several(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
