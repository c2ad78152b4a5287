"""Making sense of a stored MPIJob: typed, defaulted, validated.

Reading a spec costs a millisecond, and most looks see the same one again, so the last reading of
each job is kept by its generation. Guarantee: nothing that a user can store makes this raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mpi_trainer.api import load as reading
from mpi_trainer.api.errors import FieldError
from mpi_trainer.api.meta import ObjectMeta
from mpi_trainer.api.mpijob import (
    API_VERSION,
    KIND,
    JobStatus,
    MPIJob,
    MPIJobSpec,
    SchedulingPolicy,
)
from mpi_trainer.controller import status
from mpi_trainer.controller.objects import StoredJob
from mpi_trainer.runtime.partial import Meta

replace = msgspec.structs.replace


class Loaded(msgspec.Struct, frozen=True):
    job: MPIJob
    errors: tuple[FieldError, ...] = ()


class _Reading(msgspec.Struct, frozen=True):
    generation: int
    spec: MPIJobSpec
    errors: tuple[FieldError, ...]


class Jobs:
    """`timeout` is the administrator's default for scheduleTimeoutSeconds; 0 means none."""

    def __init__(self, timeout: int = 0) -> None:
        self._timeout = timeout
        self._readings: dict[str, _Reading] = {}

    def load(self, stored: StoredJob) -> Loaded:
        meta = stored.metadata
        read = self._readings.get(meta.uid)
        if read is None or read.generation != meta.generation or not meta.generation:
            read = self._readings[meta.uid] = self._read(stored)
        job = MPIJob(
            metadata=metadata(meta), spec=read.spec, status=status.read(stored.status, JobStatus)
        )
        return Loaded(job, read.errors)

    def forget(self, uid: str) -> None:
        self._readings.pop(uid, None)

    def _read(self, stored: StoredJob) -> _Reading:
        meta = stored.metadata
        # Annotations change within a generation, and another version's must not stop a job.
        judged = replace(metadata(meta), annotations={})
        data: Mapping[str, Any] = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": msgspec.to_builtins(judged),
            "spec": msgspec.json.decode(stored.spec),
        }
        found = reading.job(data)
        job = found.value if isinstance(found.value, MPIJob) else MPIJob()
        return _Reading(meta.generation, _timed(job.spec, self._timeout), found.errors)


def _timed(spec: MPIJobSpec, timeout: int) -> MPIJobSpec:
    """With the administrator's limit where the job sets none; 0 in the job means no limit."""
    policy = spec.run_policy.scheduling_policy or SchedulingPolicy()
    if not timeout or policy.schedule_timeout_seconds is not None:
        return spec
    policy = replace(policy, schedule_timeout_seconds=timeout)
    return replace(spec, run_policy=replace(spec.run_policy, scheduling_policy=policy))


def metadata(meta: Meta) -> ObjectMeta:
    return ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        labels=meta.labels,
        annotations=meta.annotations,
        uid=meta.uid,
        resource_version=meta.resource_version,
        generation=meta.generation,
        creation_timestamp=meta.creation_timestamp,
        deletion_timestamp=meta.deletion_timestamp,
        finalizers=meta.finalizers,
    )
