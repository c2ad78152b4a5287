"""What admission says of TrainJobs and runtimes by reading them alone. Pure.

`mutation` writes when each runtime patch was last changed, as upstream does; all other defaults are
the definition's. `judge` finds what is wrong without the runtime, and hands the job on where the
runtime must be read: a new job, and one whose patches change or that may start. An update that
leaves the spec alone is never refused, nor is one that only suspends, whatever has become of the
runtime. `judge_with_runtime` finds the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mpi_trainer.api.effective.combine import effective
from mpi_trainer.api.errors import FieldError
from mpi_trainer.api.kinds.labels import LABEL_VALIDATION
from mpi_trainer.api.kinds.managers import MULTIKUEUE
from mpi_trainer.api.kinds.network_isolation import NO_DEFAULT, IsolationDefault
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation import compatibility, network, worker_limits
from mpi_trainer.api.validation.worker_limits import DEFAULT, WorkerLimits
from mpi_trainer.api.yaml import load
from mpi_trainer.webhook.borrowed_rights import value_at
from mpi_trainer.webhook.equality import same
from mpi_trainer.webhook.resource_demand import trainjob_demand
from mpi_trainer.webhook.review import (
    UPDATE,
    AdmissionRequest,
    AdmissionVerdict,
    NeededChecks,
    Patch,
)
from mpi_trainer.webhook.trainjob import borrowed_rights, changes

Verdict = AdmissionVerdict[TrainJob]


def mutation(request: AdmissionRequest, now: datetime) -> Patch:
    """Sets the time of every runtime patch that is new or changed."""
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


def judge(request: AdmissionRequest) -> Verdict:
    new = request.new
    if value_at(new, "metadata", "deletionTimestamp"):
        return Verdict()
    old = request.old if request.operation == UPDATE else None
    if old is not None and same(old.get("spec"), new.get("spec")):
        return Verdict()
    found = load.train_job(new)
    if not isinstance(found.value, TrainJob):
        return Verdict(None, found.errors, found.warnings)
    job = found.value
    if old is None:
        return Verdict(None if found.errors else job, found.errors, found.warnings)
    before = load.train_job(old)
    errors = tuple(error for error in found.errors if error not in before.errors)
    if errors or not isinstance(before.value, TrainJob):
        return Verdict(None, errors, found.warnings)
    errors = changes.errors(before.value, job)
    starts = before.value.spec.suspend and not job.spec.suspend
    asked = not errors and (starts or changes.patches_changed(before.value, job))
    return Verdict(job if asked else None, errors, found.warnings, before=before.value)


def judge_with_runtime(
    job: TrainJob,
    runtime: Runtime,
    before: TrainJob | None,
    limits: WorkerLimits = DEFAULT,
    isolation: IsolationDefault = NO_DEFAULT,
) -> Verdict:
    """Of a job that runs on another cluster only its claims are checked here."""
    errors = tuple(compatibility.errors(job, runtime))
    whole = effective(job, runtime)
    if before is None and not errors:
        errors = tuple(worker_limits.trainjob_errors(job, whole.pods, limits))
    if not errors:
        errors = _opened(job, runtime, before, isolation)
    if errors:
        return Verdict(job, errors)
    added = borrowed_rights.added_claims(job, runtime, before)
    demand = trainjob_demand(job, whole)
    was = before and trainjob_demand(before, effective(before, runtime))
    here = job.spec.managed_by != MULTIKUEUE
    needed = NeededChecks(
        added.claims,
        demand=demand if here and was != demand else None,
        pods=here and added.new_program,
    )
    warnings = [*compatibility.warnings(job, runtime)]
    if before is None:
        warnings += worker_limits.trainjob_warnings(job, limits)
    return Verdict(job, (), tuple(warnings), needed, before)


def _opened(
    job: TrainJob, runtime: Runtime, before: TrainJob | None, isolation: IsolationDefault
) -> tuple[FieldError, ...]:
    """That its network cannot be closed, unless that was so before the change."""
    errors = tuple(network.trainjob_errors(job, effective(job, runtime), isolation))
    if not errors or before is None:
        return errors
    known = tuple(network.trainjob_errors(before, effective(before, runtime), isolation))
    return tuple(error for error in errors if error not in known)


def judge_runtime(request: AdmissionRequest) -> Verdict:
    """Of either kind of runtime. One with validation disabled is judged by its claims alone."""
    new = request.object or {}
    old = request.old_object if request.operation == UPDATE else None
    meta = new.get("metadata") or {}
    if meta.get("deletionTimestamp") or (old is not None and _judged(old) == _judged(new)):
        return Verdict()
    edited = old is not None and not same(old.get("spec"), new.get("spec"))
    needed = NeededChecks(borrowed_rights.runtime_claims(old, new), users=edited)
    if value_at(meta, "labels", LABEL_VALIDATION) == "disabled":
        return Verdict(needed=needed)
    found = load.runtime(new)
    return Verdict(None, found.errors, found.warnings, needed)


def _judged(runtime: Mapping[str, Any]) -> object:
    """What is judged of a runtime: its spec, the annotation that names its MPI, and its labels."""
    meta = runtime.get("metadata") or {}
    return runtime.get("spec"), meta.get("annotations"), meta.get("labels")


def _patches(data: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    given = ((data or {}).get("spec") or {}).get("runtimePatches")
    return [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []


def _timeless(patch: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in patch.items() if name != "time"}
