"""A launcher's Job as the loop reads it: partial, frozen, small."""

from __future__ import annotations

import msgspec

from mpi_trainer.api.kinds.pod_status import Condition
from mpi_trainer.controller import stored_pods
from mpi_trainer.runtime.partial import Meta, Partial


class JobStatus(Partial, frozen=True, gc=False):
    conditions: tuple[Condition, ...] = ()


class Job(Partial, frozen=True, gc=False):
    metadata: Meta = Meta()
    status: JobStatus = JobStatus()


def kept_job(found: Job) -> Job:
    """What the store keeps of it."""
    return msgspec.structs.replace(found, metadata=stored_pods.kept_metadata(found.metadata))
