"""Gang scheduling of MPIJobs, which an administrator turns on: fields that may have no effect."""

from __future__ import annotations

from collections.abc import Iterator

from mpi_trainer.api.errors import SUSPICIOUS, FieldError
from mpi_trainer.api.kinds.mpijob import MPIJob

UNLESS = " unless your administrator has turned gang scheduling on"
_QUEUE = "for all or nothing without it, put the job into a Kueue queue"


def mpijob_warnings(job: MPIJob, why: str = UNLESS) -> Iterator[FieldError]:
    """`why`: what is known of the cluster; admission knows nothing of the controller's flags."""
    policy = job.spec.run_policy.scheduling_policy
    if policy is None:
        return
    given = {
        "minAvailable": policy.min_available,
        "minResources": policy.min_resources,
        "priorityClass": policy.priority_class,
    }
    unused = [name for name, value in given.items() if value]
    if unused:
        path = ("spec", "runPolicy", "schedulingPolicy")
        verb = "have" if len(unused) > 1 else "has"
        rule = f"{', '.join(unused)} {verb} no effect{why}"
        yield FieldError(path, SUSPICIOUS, rule=rule, remedy=_QUEUE)
