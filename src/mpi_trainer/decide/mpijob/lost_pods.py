"""A pod that is being deleted and does not go: mostly its node is lost, which nobody can see.

Its name is taken until its node confirms the end, or an administrator removes node or pod, so the
next attempt waits for it. Guarantee: the job's other workers wait with it for `RELEASED_AFTER` and
no longer; then they are given back, and the attempt starts all of them anew when it can.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.decide.mpijob import elastic
from mpi_trainer.decide.observed import Observed, ObservedPod

RELEASED_AFTER = timedelta(minutes=5)
"""after the time at which the pod was to be gone, its grace included"""


def awaited_deletions(job: MPIJob, observed: Observed) -> tuple[ObservedPod, ...]:
    """The pods on their way out that an attempt has to wait for: their names are needed again.

    A worker beyond `replicas` is not one of them, nor one that the launcher does not count on.
    """
    needed = elastic.workers_needed(job, observed)
    return tuple(
        p for p in observed.pods if p.terminating and (p.role == "launcher" or p.index < needed)
    )


def remaining(job: MPIJob, observed: Observed, now: datetime) -> timedelta | None:
    """Until the healthy workers are given back; None where no pod is on its way out."""
    late = [now - p.gone_by for p in awaited_deletions(job, observed) if p.gone_by is not None]
    return RELEASED_AFTER - max(late) if late else None


def workers_to_release(job: MPIJob, observed: Observed, now: datetime) -> tuple[str, ...]:
    """The workers to give back now."""
    left = remaining(job, observed, now)
    if left is None or left > timedelta(0):
        return ()
    return tuple(p.name for p in observed.workers if not p.terminating)


def message(job: MPIJob, observed: Observed, count: int) -> str:
    dated = [p for p in awaited_deletions(job, observed) if p.gone_by is not None]
    lost = min(dated, key=lambda p: (p.gone_by, p.name))
    minutes = RELEASED_AFTER // timedelta(minutes=1)
    return (
        f"Pod {lost.name} is being deleted and its node has not confirmed its end for {minutes} "
        f"minutes: {count} other workers are given back until it is gone. If its node is lost, "
        "delete the Node, or the pod with --grace-period=0 --force."
    )
