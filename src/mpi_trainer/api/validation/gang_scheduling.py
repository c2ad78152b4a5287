"""Gang scheduling, whose fields are accepted and have no effect yet: one warning for each job."""

from __future__ import annotations

from collections.abc import Iterator

from mpi_trainer.api.errors import SUSPICIOUS, FieldError
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.runtime import Runtime

_GANG = "gang scheduling is not served yet, and pods are scheduled one by one"
_QUEUE = "for all or nothing, put the job into a Kueue queue"


def mpijob_warnings(job: MPIJob) -> Iterator[FieldError]:
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
        rule = f"{', '.join(unused)} {verb} no effect: {_GANG}"
        yield FieldError(path, SUSPICIOUS, rule=rule, remedy=_QUEUE)


def runtime_warnings(runtime: Runtime) -> Iterator[FieldError]:
    """At the field of a TrainJob that names this runtime."""
    if runtime.spec.pod_group_policy is not None:
        rule = f"the runtime's podGroupPolicy has no effect: {_GANG}"
        yield FieldError(("spec", "runtimeRef", "name"), SUSPICIOUS, runtime.name, rule, _QUEUE)
