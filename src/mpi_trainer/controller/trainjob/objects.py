"""JobSets as the loop reads them: partial, frozen, small. JobSet's own labels; which pods."""

from __future__ import annotations

from mpi_trainer.api.kinds.annotations import RENDERED, RUNTIME_SNAPSHOT
from mpi_trainer.api.kinds.trainjob import ReplicatedJobStatus, TrainJobCondition
from mpi_trainer.decide.trainjob.observed import ObservedJobSet
from mpi_trainer.kube.resources import TRAINJOBS
from mpi_trainer.runtime.partial import Meta, Partial

ENDED = "status.phase!=Pending,status.phase!=Running"


class JobSetSpec(Partial, frozen=True, gc=False):
    suspend: bool = False


class JobSetStatus(Partial, frozen=True, gc=False):
    conditions: tuple[TrainJobCondition, ...] = ()
    replicated_jobs_status: tuple[ReplicatedJobStatus, ...] = ()


class JobSet(Partial, frozen=True, gc=False):
    metadata: Meta = Meta()
    spec: JobSetSpec = JobSetSpec()
    status: JobSetStatus = JobSetStatus()


def observed_job_set(found: JobSet | None, uid: str) -> ObservedJobSet | None:
    """What is seen of the JobSet of the job with this uid; None where it is another's."""
    owner = found.metadata.controller() if found is not None else None
    if found is None or owner is None or owner.uid != uid or not owner.of(TRAINJOBS):
        return None
    return ObservedJobSet(
        uid=found.metadata.uid,
        suspended=found.spec.suspend,
        terminating=found.metadata.deletion_timestamp is not None,
        rendered=found.metadata.annotations.get(RENDERED, ""),
        runtime=found.metadata.annotations.get(RUNTIME_SNAPSHOT, ""),
        jobs=found.status.replicated_jobs_status,
        completed=_condition(found, "Completed"),
        failed=_condition(found, "Failed"),
    )


def _condition(found: JobSet, kind: str) -> TrainJobCondition | None:
    true = (one for one in found.status.conditions if one.status == "True")
    return next((one for one in true if one.type == kind), None)
