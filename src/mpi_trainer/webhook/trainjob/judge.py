"""What admission says of TrainJobs and runtimes by looking at them alone. Pure.

`stamps` writes when each runtime patch was last changed, as upstream does; all other defaults are
the definition's. `judge` finds what is wrong without the runtime, and hands the job on where the
runtime must be asked: a new job, and one whose patches change or that may start. An update that
leaves the spec alone is never refused, nor is one that only suspends, whatever has become of the
runtime.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from mpi_trainer.api.errors import FieldError
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml import load
from mpi_trainer.webhook import borrowed_rights
from mpi_trainer.webhook.equality import same
from mpi_trainer.webhook.review import UPDATE, Request
from mpi_trainer.webhook.trainjob import changes

Patch = tuple[dict[str, Any], ...]

UNCHECKED = ("trainer.kubeflow.org/webhook-validation", "disabled")
"""the label and its value by which upstream's runtimes are taken as they are"""


class Verdict(msgspec.Struct, frozen=True):
    """`job` is None where nothing more needs to be asked about it. `before`: what it was. `claims`
    are those of a runtime; a job's are known only with its runtime."""

    job: TrainJob | None = None
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[FieldError, ...] = ()
    before: TrainJob | None = None
    claims: tuple[borrowed_rights.Claim, ...] = ()


def stamps(request: Request, now: datetime) -> Patch:
    """JSON patch steps that set the time of every patch that is new or changed."""
    patches = _patches(request.object)
    before = {one.get("manager"): one for one in _patches(request.old_object)}
    text = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    steps: list[dict[str, Any]] = []
    for n, patch in enumerate(patches):
        old = before.get(patch.get("manager")) if request.operation == UPDATE else None
        wanted = patch.get("time") or text
        if old is not None:
            kept = same(_timeless(old), _timeless(patch))
            wanted = old.get("time") or text if kept else text
        if patch.get("time") != wanted:
            path = f"/spec/runtimePatches/{n}/time"
            steps.append({"op": "add", "path": path, "value": wanted})
    return tuple(steps)


def judge(request: Request) -> Verdict:
    new = _named(request.object or {}, request)
    if (new.get("metadata") or {}).get("deletionTimestamp"):
        return Verdict()
    old = _named(request.old_object or {}, request) if request.operation == UPDATE else None
    if old is not None and same(old.get("spec"), new.get("spec")):
        return Verdict()
    found = load.train_job(new)
    if not isinstance(found.value, TrainJob):
        return Verdict(None, found.errors, found.warnings)
    job = found.value
    if old is None:
        return Verdict(None if found.errors else job, found.errors, found.warnings)
    before = load.train_job(old)
    told = tuple(error for error in found.errors if error not in before.errors)
    if told or not isinstance(before.value, TrainJob):
        return Verdict(None, told, found.warnings)
    told = changes.errors(before.value, job)
    starts = before.value.spec.suspend and not job.spec.suspend
    asked = not told and (starts or changes.patches_changed(before.value, job))
    return Verdict(job if asked else None, told, found.warnings, before.value)


def judge_runtime(request: Request) -> Verdict:
    """Of either kind of runtime. One that says so is not looked at, but for rights."""
    new, old = request.object or {}, request.old_object
    if request.operation != UPDATE:
        old = None
    meta = new.get("metadata") or {}
    if meta.get("deletionTimestamp") or (old is not None and _told(old) == _told(new)):
        return Verdict()
    templates = borrowed_rights.of_runtime(new)
    volumes = borrowed_rights.volume_claims(new)
    if old is None:
        claims = (*borrowed_rights.claims(templates), *volumes)
    else:
        brought = borrowed_rights.brought(borrowed_rights.of_runtime(old), templates)
        claims = (
            *brought.claims,
            *(c for c in volumes if c not in borrowed_rights.volume_claims(old)),
        )
    if borrowed_rights.inside(meta, "labels", UNCHECKED[0]) == UNCHECKED[1]:
        return Verdict(claims=claims)
    found = load.runtime(new)
    return Verdict(None, found.errors, found.warnings, claims=claims)


def _told(data: Mapping[str, Any]) -> object:
    """What is judged of a runtime: its spec, and the annotation that names its MPI."""
    meta = data.get("metadata") or {}
    return data.get("spec"), meta.get("annotations"), meta.get("labels")


def _patches(data: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    given = ((data or {}).get("spec") or {}).get("runtimePatches")
    return [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []


def _timeless(patch: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in patch.items() if name != "time"}


def _named(data: Mapping[str, Any], request: Request) -> dict[str, Any]:
    """With the namespace that the request is for, which the object itself may leave open."""
    meta = {**(data.get("metadata") or {}), "namespace": request.namespace}
    return {**data, "metadata": meta}
