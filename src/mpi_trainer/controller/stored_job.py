"""What the store keeps of a job: all of one that is under way, of one that has ended very little.

A cluster keeps finished jobs by the ten thousand. What is still to do for one (clean up, release
pods, delete it in time) needs its status and a few fields of its spec; the rest is not kept. A job
whose status or spec is odd is kept whole, and judged by those who read it fully; of a spec over
`bounds.SPEC_BYTES` as little as of a finished job's, so that a few users cannot fill the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, Literal

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds.annotations import ATTEMPTS, KNOWN, OPENSHIFT_AI, PHASE, ours
from mpi_trainer.api.kinds.conditions import (
    CREATED,
    FAILED,
    RESTARTING,
    RUNNING,
    SUCCEEDED,
    SUSPENDED,
    TRUE,
)
from mpi_trainer.api.kinds.trainjob import COMPLETE
from mpi_trainer.api.yaml import typed
from mpi_trainer.controller.objects import StoredJob
from mpi_trainer.runtime.partial import Meta, Partial

replace = msgspec.structs.replace

_LONGEST_OPTION: Final = 32
"""characters that are read of an annotation of OpenShift AI"""
ENDS: Final = (SUCCEEDED, FAILED)
_MPIJOB_STATES: Final = (FAILED, SUCCEEDED, SUSPENDED, RESTARTING, RUNNING)
_TRAINJOB_STATES: Final = {FAILED: FAILED, COMPLETE: SUCCEEDED, SUSPENDED: SUSPENDED}


class _Condition(Partial, frozen=True, gc=False):
    type: str = ""
    status: str = ""


class _Status(Partial, frozen=True, gc=False):
    conditions: tuple[_Condition, ...] = ()


class _RunPolicy(Partial, frozen=True, gc=False):
    """Values that validation refuses are not acted upon at the end either."""

    clean_pod_policy: Literal["", "None", "Running", "All"] | None = None
    ttl_seconds_after_finished: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] | None = None
    managed_by: str | None = None


class _RuntimeRef(Partial, frozen=True, gc=False):
    name: str = ""


class _Spec(Partial, frozen=True, gc=False):
    """What is read of a job that has ended: an MPIJob's `runPolicy`, the rest of a TrainJob."""

    run_policy: _RunPolicy | None = None
    managed_by: str | None = None
    runtime_ref: _RuntimeRef | None = None


def _kept(state_of: Callable[[StoredJob, frozenset[str]], str]) -> Callable[[StoredJob], StoredJob]:
    """`state_of` says where a job stands, by the conditions that hold."""

    def keep(job: StoredJob) -> StoredJob:
        state = ""
        try:
            conditions = typed.decode(job.status, _Status).conditions
            state = state_of(job, frozenset(c.type for c in conditions if c.status == TRUE))
            if state in ENDS:
                return _ended(job, state)
        except msgspec.ValidationError:
            pass
        size = memoryview(job.spec).nbytes
        return StoredJob(
            metadata=_bounded(job.metadata),
            # Copies: what was decoded is a view of the whole page that it came with (C-8).
            spec=job.spec.copy() if size <= bounds.SPEC_BYTES else _trimmed(job.spec),
            status=job.status.copy(),
            spec_size=size,
            state=state,
        )

    return keep


def _mpijob_state(_: StoredJob, holds: frozenset[str]) -> str:
    return next((state for state in _MPIJOB_STATES if state in holds), CREATED)


def _trainjob_state(job: StoredJob, holds: frozenset[str]) -> str:
    """The public status does not say that it runs; our annotation does."""
    for condition, state in _TRAINJOB_STATES.items():
        if condition in holds:
            return state
    running = job.metadata.annotations.get(PHASE) == RUNNING
    return RUNNING if running else CREATED


def _ended(job: StoredJob, state: str) -> StoredJob:
    return StoredJob(
        metadata=_known(job.metadata),
        spec=msgspec.Raw(msgspec.json.encode(typed.decode(job.spec, _Spec))),
        status=job.status.copy(),
        finished=True,
        state=state,
    )


def _trimmed(spec: msgspec.Raw) -> msgspec.Raw:
    try:
        return msgspec.Raw(msgspec.json.encode(typed.decode(spec, _Spec)))
    except msgspec.ValidationError:
        return msgspec.Raw(b"{}")


def _known(meta: Meta) -> Meta:
    """Without the last words of its attempts, which nobody here reads any more."""
    kept = _bounded(meta)
    notes = {name: text for name, text in kept.annotations.items() if name != ATTEMPTS}
    return replace(kept, annotations=notes, labels={}, owner_references=())


def _bounded(meta: Meta) -> Meta:
    """With our annotations and OpenShift AI's only; where ours are too many, those that are
    read, and of each no more than shows that it is too long."""
    kept = ours(meta.annotations)
    if sum(map(len, kept)) + sum(map(len, kept.values())) > bounds.OUR_ANNOTATIONS:
        kept = {n: kept[n][: bounds.RECORD + 1] for n in KNOWN if n in kept}
    options = {
        n: meta.annotations[n][:_LONGEST_OPTION] for n in OPENSHIFT_AI if n in meta.annotations
    }
    return replace(meta, annotations={**kept, **options})


kept_mpijob: Final = _kept(_mpijob_state)
kept_trainjob: Final = _kept(_trainjob_state)
