"""How a TrainJob of this machine stands, in its own API's words. Pure.

The conditions are those of the public API (Suspended, Complete, Failed), and `jobsStatus` counts
child Jobs: one for each replicated job, whatever its pods.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mpi_trainer.api.effective.combine import LAUNCHER, effective
from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds import mpijob, trainjob
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.runtime import MPI
from mpi_trainer.api.kinds.trainjob import ReplicatedJobStatus, TrainJobCondition, TrainJobStatus
from mpi_trainer.local.execute.settings import SubmittedTrainJob
from mpi_trainer.local.jobs.trainjob import values

replace = msgspec.structs.replace
WORDS = {
    c.SUSPENDED: trainjob.SUSPENDED,
    c.SUCCEEDED: trainjob.COMPLETE,
    c.FAILED: trainjob.FAILED,
}
REASONS = {
    (c.SUSPENDED, c.TRUE): "Suspended",
    (c.SUSPENDED, c.FALSE): "Resumed",
    (c.SUCCEEDED, c.TRUE): "AllJobsCompleted",
}


def wire(train: SubmittedTrainJob, executed: MPIJob) -> dict[str, Any]:
    """The TrainJob as stored, with suspension and status as the executor has them."""
    job, given = values(train)
    spec = replace(job.spec, suspend=executed.spec.run_policy.suspend)
    whole = replace(job, metadata=executed.metadata, spec=spec)
    found = effective(job, given)
    status = TrainJobStatus(
        conditions=tuple(_conditions(executed.status)),
        jobs_status=tuple(
            _counts(one.name, _role(found.policy, one.role), executed) for one in found.jobs
        ),
    )
    return trainjob.to_wire(replace(whole, status=status))


def _role(policy: str, role: str) -> str:
    return mpijob.LAUNCHER if policy != MPI or role == LAUNCHER else mpijob.WORKER


def _conditions(status: mpijob.MPIJobStatus) -> list[TrainJobCondition]:
    return [
        TrainJobCondition(
            type=WORDS[one.type],
            status=one.status,
            reason=REASONS.get((one.type, one.status), one.reason),
            message=one.message,
            last_transition_time=one.last_transition_time,
        )
        for one in status.conditions
        if one.type in WORDS
    ]


def _counts(name: str, role: str, executed: MPIJob) -> ReplicatedJobStatus:
    counted = executed.status.replica_statuses.get(role, mpijob.ReplicaStatus())
    suspended = c.holds(executed.status.conditions, c.SUSPENDED)
    active = int(counted.active > 0)
    failed = int(counted.failed > 0)
    succeeded = int(counted.succeeded > 0 and not active and not failed)
    ready = int(active and c.holds(executed.status.conditions, c.RUNNING))
    return ReplicatedJobStatus(name, ready, succeeded, failed, active, int(suspended))
