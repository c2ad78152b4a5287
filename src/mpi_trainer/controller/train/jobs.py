"""Making sense of a stored TrainJob: typed, defaulted, validated, once per generation.

Guarantee: nothing that a user can store makes this raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mpi_trainer.api import load as reading
from mpi_trainer.api.errors import FieldError
from mpi_trainer.api.trainjob import API_VERSION, KIND, TrainJob, TrainJobSpec, TrainJobStatus
from mpi_trainer.controller import status
from mpi_trainer.controller.jobs import metadata
from mpi_trainer.controller.objects import StoredJob

replace = msgspec.structs.replace


class Loaded(msgspec.Struct, frozen=True):
    job: TrainJob
    errors: tuple[FieldError, ...] = ()


class _Reading(msgspec.Struct, frozen=True):
    generation: int
    spec: TrainJobSpec
    errors: tuple[FieldError, ...]


class TrainReadings:
    def __init__(self) -> None:
        self._readings: dict[str, _Reading] = {}

    def load(self, stored: StoredJob) -> Loaded:
        meta = stored.metadata
        read = self._readings.get(meta.uid)
        if read is None or read.generation != meta.generation or not meta.generation:
            read = self._readings[meta.uid] = _read(stored)
        job = TrainJob(
            metadata=metadata(meta),
            spec=read.spec,
            status=status.read(stored.status, TrainJobStatus),
        )
        return Loaded(job, read.errors)

    def forget(self, uid: str) -> None:
        self._readings.pop(uid, None)


def _read(stored: StoredJob) -> _Reading:
    meta = stored.metadata
    # Annotations change within a generation, and another version's must not stop a job.
    judged = replace(metadata(meta), annotations={})
    data: Mapping[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": msgspec.to_builtins(judged),
        "spec": msgspec.json.decode(stored.spec),
    }
    found = reading.train_job(data)
    job = found.value if isinstance(found.value, TrainJob) else TrainJob()
    return _Reading(meta.generation, job.spec, found.errors)
