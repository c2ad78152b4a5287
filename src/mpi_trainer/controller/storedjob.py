"""What the store keeps of a job: all of one that is under way, of one that has ended very little.

A cluster keeps finished jobs by the ten thousand. What is still to do for one (clean up, let go,
delete it in time) needs its status and a few words of its spec; the rest is not kept. A job whose
status or spec is odd is kept whole, and judged by those who read it fully.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from mpi_trainer.api import typed
from mpi_trainer.api.annotations import DOMAIN
from mpi_trainer.controller.objects import StoredJob
from mpi_trainer.runtime.partial import Meta, Partial

replace = msgspec.structs.replace


class _Condition(Partial, frozen=True, gc=False):
    type: str = ""
    status: str = ""


class _Status(Partial, frozen=True, gc=False):
    conditions: tuple[_Condition, ...] = ()


class _RunPolicy(Partial, frozen=True, gc=False):
    clean_pod_policy: str | None = None
    ttl_seconds_after_finished: int | None = None
    managed_by: str | None = None


class _RuntimeRef(Partial, frozen=True, gc=False):
    name: str = ""


class _Spec(Partial, frozen=True, gc=False):
    """What is read of a job that has ended: an MPIJob's `runPolicy`, the rest of a TrainJob."""

    run_policy: _RunPolicy | None = None
    managed_by: str | None = None
    runtime_ref: _RuntimeRef | None = None


def _keeper(*ends: str) -> Callable[[StoredJob], StoredJob]:
    """`ends` are the conditions of which one is true of every job that has ended."""

    def keep(job: StoredJob) -> StoredJob:
        try:
            told = typed.decode(job.status, _Status).conditions
            if any(one.status == "True" and one.type in ends for one in told):
                return _ended(job)
        except msgspec.ValidationError:
            pass
        # A copy: what was decoded is a view of the whole page that it came with (C-8).
        return replace(job, spec=job.spec.copy(), status=job.status.copy(), finished=False)

    return keep


def _ended(job: StoredJob) -> StoredJob:
    spec = msgspec.json.encode(typed.decode(job.spec, _Spec))
    return StoredJob(
        metadata=_known(job.metadata),
        spec=msgspec.Raw(spec),
        status=job.status.copy(),
        finished=True,
    )


def _known(meta: Meta) -> Meta:
    ours = {name: text for name, text in meta.annotations.items() if name.startswith(DOMAIN)}
    return replace(meta, annotations=ours, labels={}, owner_references=())


mpijob: Final = _keeper("Succeeded", "Failed")
trainjob: Final = _keeper("Complete", "Failed")
