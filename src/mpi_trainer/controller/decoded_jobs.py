"""Making sense of a stored job of one kind: typed, defaulted, validated.

Reading a spec costs a millisecond, and most passes see the same one again, so the last reading of
each job is kept by its generation. Guarantee: nothing that a user can store makes this raise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.errors import FieldError
from mpi_trainer.api.kinds.labels import is_reserved_error
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.mpijob import MPIJob, SchedulingPolicy
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation import size
from mpi_trainer.controller import status
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.objects import StoredJob
from mpi_trainer.runtime.off_loop import OffLoop
from mpi_trainer.runtime.partial import Meta

J = TypeVar("J", MPIJob, TrainJob)
replace = msgspec.structs.replace


class StoredObject(Protocol):
    """What `api.yaml.load` makes of plain data."""

    @property
    def value(self) -> object: ...
    @property
    def errors(self) -> tuple[FieldError, ...]: ...


class Loaded(msgspec.Struct, Generic[J], frozen=True):
    job: J
    errors: tuple[FieldError, ...] = ()


class _LastDecoding(msgspec.Struct):
    generation: int = 0
    loaded: Loaded[Any] | None = None


class DecodedJobs(Generic[J]):
    """`read` is the kind's own in `api.yaml.load`; `filled` adds what the administrator has set."""

    def __init__(
        self,
        kind: type[J],
        read: Callable[[Mapping[str, Any]], StoredObject],
        memories: JobMemories,
        filled: Callable[[J], J] = lambda job: job,
    ) -> None:
        self._kind: type[J] = kind
        self._read_data = read
        self._filled: Callable[[J], J] = filled
        self._memories = memories
        self._long = OffLoop()

    async def prepare(self, stored: StoredJob) -> None:
        """Reads a long spec beside the event loop, before `load` is asked for it."""
        if stored.finished:
            return
        known = self._memories.part(stored.metadata.uid, _LastDecoding)
        if not _is_of(known, stored.metadata):
            namespace, size = stored.metadata.namespace, stored.spec_size
            loaded = await self._long.run(namespace, size, self._read, stored)
            known.loaded, known.generation = loaded, stored.metadata.generation

    def load(self, stored: StoredJob) -> Loaded[J]:
        meta = stored.metadata
        if stored.finished:
            return Loaded(self._ended(stored))
        known = self._memories.part(meta.uid, _LastDecoding)
        read: Loaded[J] | None = known.loaded
        if read is None or not _is_of(known, meta):
            read = known.loaded = self._read(stored)
            known.generation = meta.generation
        now = status.read(stored.status, type(read.job.status))
        return Loaded(replace(read.job, metadata=metadata(meta), status=now), read.errors)

    def _ended(self, stored: StoredJob) -> J:
        """What is left to act upon; nobody needs to hear any more what is wrong with the rest."""
        empty = self._kind()
        now = status.read(stored.status, type(empty.status))
        spec = status.read(stored.spec, type(empty.spec))
        return replace(empty, metadata=metadata(stored.metadata), spec=spec, status=now)

    def _read(self, stored: StoredJob) -> Loaded[J]:
        empty = self._kind()
        if stored.spec_size > bounds.SPEC_BYTES:
            return Loaded(self._ended(stored), (size.too_large(stored.spec_size),))
        wrong = size.text_errors(bytes(stored.spec))
        if wrong:
            return Loaded(empty, wrong)
        # Annotations change within a generation, and another version's must not stop a job.
        judged = replace(metadata(stored.metadata), annotations={})
        found = self._read_data(
            {
                "apiVersion": empty.api_version,
                "kind": empty.kind,
                "metadata": msgspec.to_builtins(judged),
                "spec": msgspec.json.decode(stored.spec),
            }
        )
        job = found.value if isinstance(found.value, self._kind) else empty
        wrong = tuple(error for error in found.errors if not is_reserved_error(error))
        return Loaded(self._filled(job), wrong)


def _is_of(known: _LastDecoding, meta: Meta) -> bool:
    return known.loaded is not None and 0 < known.generation == meta.generation


def with_schedule_timeout(seconds: int) -> Callable[[MPIJob], MPIJob]:
    """The administrator's scheduleTimeoutSeconds where a job sets none; 0 means no limit."""

    def filled(job: MPIJob) -> MPIJob:
        policy = job.spec.run_policy.scheduling_policy or SchedulingPolicy()
        if not seconds or policy.schedule_timeout_seconds is not None:
            return job
        policy = replace(policy, schedule_timeout_seconds=seconds)
        run_policy = replace(job.spec.run_policy, scheduling_policy=policy)
        return replace(job, spec=replace(job.spec, run_policy=run_policy))

    return filled


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
