"""What admission says of an MPIJob by reading it alone. Pure.

`mutation` writes out what the job leaves open, and the queue that its scheduling policy names.
`judge` finds everything that is wrong, and what the API server is to be asked: of a new job all, of
a changed one what the change is about. An update that leaves the spec and our annotations alone is
never refused: a job that was admitted once must stay changeable in its labels, status and
finalizers, and an annotation that only another version knows must not hold up a queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mpi_trainer.api.kinds.annotations import ours
from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.api.kinds.mpijob import MPIJob, to_wire
from mpi_trainer.api.kinds.network_isolation import NO_DEFAULT, IsolationDefault
from mpi_trainer.api.validation import network, worker_limits
from mpi_trainer.api.validation.worker_limits import DEFAULT, WorkerLimits
from mpi_trainer.api.yaml import load
from mpi_trainer.webhook.borrowed_rights import value_at
from mpi_trainer.webhook.mpijob import borrowed_rights, changes
from mpi_trainer.webhook.resource_demand import mpijob_demand
from mpi_trainer.webhook.review import (
    UPDATE,
    AdmissionRequest,
    AdmissionVerdict,
    NeededChecks,
    Patch,
)

ANNOTATIONS = ("metadata", "annotations")

Verdict = AdmissionVerdict[MPIJob]


def judge(
    request: AdmissionRequest,
    limits: WorkerLimits = DEFAULT,
    isolation: IsolationDefault = NO_DEFAULT,
) -> Verdict:
    new = request.new
    if value_at(new, "metadata", "deletionTimestamp"):
        return Verdict()
    if request.operation == UPDATE:
        return _judge_change(request.old, new, limits, isolation)
    found = load.job(new)
    job = found.value if isinstance(found.value, MPIJob) and not found.errors else None
    demand = None if job is None else mpijob_demand(job)
    needed = NeededChecks(borrowed_rights.claims(new), demand, pods=True)
    if job is None:
        return Verdict(None, found.errors, found.warnings, needed)
    warnings = (*found.warnings, *worker_limits.mpijob_warnings(job, limits))
    errors = (*worker_limits.mpijob_errors(job, limits), *network.errors(job, isolation))
    return Verdict(job, errors, warnings, needed)


def _judge_change(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    limits: WorkerLimits,
    isolation: IsolationDefault,
) -> Verdict:
    """What a change has made wrong, or has left wrong in a spec that it touches."""
    same_spec = new.get("spec") == old.get("spec")
    if same_spec and _our_annotations(new) == _our_annotations(old):
        return Verdict()
    found, before = load.job(new), load.job(old)
    tolerated = [e for e in before.errors if same_spec or e.path[: len(ANNOTATIONS)] == ANNOTATIONS]
    errors = tuple(error for error in found.errors if error not in tolerated)
    added = borrowed_rights.added_claims(old, new)
    needed = NeededChecks(added.claims, pods=added.new_program)
    if errors or not isinstance(found.value, MPIJob) or not isinstance(before.value, MPIJob):
        return Verdict(None, errors, found.warnings, needed)
    errors = changes.errors(before.value, found.value)
    if found.value.workers > before.value.workers:
        errors = (*errors, *worker_limits.mpijob_errors(found.value, limits))
    open_before = tuple(network.errors(before.value, isolation))
    opened = (e for e in network.errors(found.value, isolation) if e not in open_before)
    errors = (*errors, *opened)
    was, demand = mpijob_demand(before.value), mpijob_demand(found.value)
    # What is left of a quota says nothing of a job whose own pods are counted in it.
    needed = replace(needed, demand=None if was == demand else demand, quota_left=not was.stages)
    return Verdict(found.value, errors, found.warnings, needed)


def _our_annotations(data: Mapping[str, Any]) -> object:
    """As far as they can be read."""
    given = value_at(data, *ANNOTATIONS)
    return ours(given) if isinstance(given, Mapping) else given


def mutation(request: AdmissionRequest, kueue: bool) -> Patch:
    """The defaults; nothing for what cannot be read, which `judge` then refuses in words.

    `kueue`: whether Kueue is installed and reads the label of the queue.
    """
    data = request.object or {}
    found = load.job(request.new)
    if found.errors or not isinstance(found.value, MPIJob):
        return ()
    steps = _missing((), data.get("spec") or {}, to_wire(found.value).get("spec") or {})
    return (*steps, *(_queue_label(found.value) if kueue and request.operation != UPDATE else ()))


def _queue_label(job: MPIJob) -> Patch:
    policy = job.spec.run_policy.scheduling_policy
    if policy is None or not policy.queue or LABEL_QUEUE in job.metadata.labels:
        return ()
    if not job.metadata.labels:
        value = {LABEL_QUEUE: policy.queue}
        return ({"op": "add", "path": "/metadata/labels", "value": value},)
    path = f"/metadata/labels/{_pointer(LABEL_QUEUE)}"
    return ({"op": "add", "path": path, "value": policy.queue},)


def _missing(path: tuple[str, ...], given: Mapping[str, Any], full: Mapping[str, Any]) -> Patch:
    """Adds what `full` has and `given` has not; whatever was written stays as it is."""
    steps: list[dict[str, Any]] = []
    for key, value in full.items():
        here = (*path, key)
        if given.get(key) is None:
            where = "/spec/" + "/".join(_pointer(part) for part in here)
            steps.append({"op": "add", "path": where, "value": value})
        elif isinstance(value, dict) and isinstance(given[key], dict) and key != "template":
            steps += _missing(here, given[key], value)
    return tuple(steps)


def _pointer(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")
