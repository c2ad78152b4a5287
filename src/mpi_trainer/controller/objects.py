"""Jobs of both kinds, and what runs them, as the loops read them: partial, frozen, small.

A job's spec and status are kept as the bytes that came: whatever a user managed to store must not
keep the others' jobs from being read. `decoded_jobs` makes sense of them, one job at a time.
"""

from __future__ import annotations

from typing import Final

import msgspec

from mpi_trainer.api.kinds.pod_status import Condition, PodStatus
from mpi_trainer.api.kinds.trainjob import ReplicatedJobStatus, TrainJobCondition
from mpi_trainer.runtime.partial import Meta, Partial

_NOTHING = msgspec.Raw(b"{}")
POD_SECONDS: Final = 0.1
"""how late changes of pods may come where many pods change"""


class ContainerName(Partial, frozen=True, gc=False):
    name: str = ""


class PodSpec(Partial, frozen=True, gc=False):
    node_name: str = ""
    hostname: str = ""
    containers: tuple[ContainerName, ...] = ()


class Pod(Partial, frozen=True, gc=False):
    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class JobStatus(Partial, frozen=True, gc=False):
    conditions: tuple[Condition, ...] = ()


class Job(Partial, frozen=True, gc=False):
    """The launcher's of an MPIJob."""

    metadata: Meta = Meta()
    status: JobStatus = JobStatus()


class JobSetSpec(Partial, frozen=True, gc=False):
    suspend: bool = False


class JobSetStatus(Partial, frozen=True, gc=False):
    conditions: tuple[TrainJobCondition, ...] = ()
    replicated_jobs_status: tuple[ReplicatedJobStatus, ...] = ()


class JobSet(Partial, frozen=True, gc=False):
    """Of a TrainJob."""

    metadata: Meta = Meta()
    spec: JobSetSpec = JobSetSpec()
    status: JobSetStatus = JobSetStatus()


class KeptChild(Partial, frozen=True, gc=False):
    """A child whose whole spec is compared with what was rendered."""

    metadata: Meta = Meta()
    spec: msgspec.Raw = _NOTHING


class StoredJob(Partial, frozen=True, gc=False):
    """A job as it is stored, not decoded yet; `stored_job` says what is kept of it.

    `finished`: it has ended, for sure, and most of its spec is left out. So it is where the spec
    is too large; `spec_size` is what it was. `state` is one word for where it stands, "" where its
    status cannot be read.
    """

    metadata: Meta = Meta()
    spec: msgspec.Raw = _NOTHING
    status: msgspec.Raw = _NOTHING
    finished: bool = False
    spec_size: int = 0
    state: str = ""


class Answer(Partial, frozen=True, gc=False):
    """What a write returns, as far as we care."""

    kind: str = ""
    metadata: Meta = Meta()
