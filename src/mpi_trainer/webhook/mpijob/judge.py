"""What admission says of an MPIJob by looking at it alone. Pure.

`defaults` writes out what the job leaves open, and the queue that its scheduling policy names;
`judge` finds everything that is wrong, and what the API server is to be asked: of a new job all, of
a changed one what the change is about. An update that leaves the spec and our annotations alone is
never refused: a job that was taken once must stay changeable in its labels, status and finalizers,
and an annotation that only another version knows must not hold up a queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from mpi_trainer.api.errors import FieldError
from mpi_trainer.api.kinds.annotations import ours
from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.api.kinds.mpijob import MPIJob, to_wire
from mpi_trainer.api.yaml import load
from mpi_trainer.render import names
from mpi_trainer.webhook import borrowed_rights, resource_demand
from mpi_trainer.webhook.mpijob import changes
from mpi_trainer.webhook.resource_demand import Questions
from mpi_trainer.webhook.review import UPDATE, Request

Patch = tuple[dict[str, Any], ...]

WORDS = ("metadata", "annotations")


class Verdict(msgspec.Struct, frozen=True):
    """`job` is None where it cannot be read as a whole; its claims are asked all the same."""

    job: MPIJob | None = None
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[FieldError, ...] = ()
    questions: Questions = Questions()


def judge(request: Request) -> Verdict:
    new = _named(request.object or {}, request)
    if _metadata(new).get("deletionTimestamp"):
        return Verdict()
    if request.operation == UPDATE:
        return _change(_named(request.old_object or {}, request), new)
    found = load.job(new)
    job = found.value if isinstance(found.value, MPIJob) and not found.errors else None
    claims = borrowed_rights.claims(borrowed_rights.of_mpijob(new), names.secret(_name(new)))
    return Verdict(job, found.errors, found.warnings, Questions(claims, True, True, True))


def _change(old: Mapping[str, Any], new: Mapping[str, Any]) -> Verdict:
    """What a change has made wrong, or has left wrong in a spec that it touches."""
    same_spec = new.get("spec") == old.get("spec")
    if same_spec and _words(new) == _words(old):
        return Verdict()
    found, before = load.job(new), load.job(old)
    borne = [e for e in before.errors if same_spec or e.path[: len(WORDS)] == WORDS]
    told = tuple(error for error in found.errors if error not in borne)
    questions = _questions(old, new)
    if told or not isinstance(found.value, MPIJob) or not isinstance(before.value, MPIJob):
        return Verdict(None, told, found.warnings, questions)
    told = changes.errors(before.value, found.value)
    was, wants = resource_demand.of_mpijob(before.value), resource_demand.of_mpijob(found.value)
    # What is left of a quota says nothing of a job whose own pods are counted in it.
    asked = replace(questions, room=was != wants, left=not was.stages)
    return Verdict(found.value, told, found.warnings, asked)


def _questions(old: Mapping[str, Any], new: Mapping[str, Any]) -> Questions:
    """Who brings which claims, and whether the pods would be others than before."""
    before, after = borrowed_rights.of_mpijob(old), borrowed_rights.of_mpijob(new)
    brought = borrowed_rights.brought(before, after, names.secret(_name(new)))
    return Questions(brought.claims, pods=brought.program)


def _words(data: Mapping[str, Any]) -> object:
    """Our annotations, as far as they can be read."""
    given = _metadata(data).get("annotations")
    return ours(given) if isinstance(given, Mapping) else given


def defaults(request: Request, queues: bool) -> Patch:
    """JSON patch steps; none for what cannot be read, which `judge` then refuses in words.

    `queues`: whether Kueue is there to read the queue's label.
    """
    data = request.object or {}
    found = load.job(_named(data, request))
    if found.errors or not isinstance(found.value, MPIJob):
        return ()
    steps = _missing((), data.get("spec") or {}, to_wire(found.value).get("spec") or {})
    return (*steps, *(_queue(found.value) if queues and request.operation != UPDATE else ()))


def _named(data: Mapping[str, Any], request: Request) -> dict[str, Any]:
    """With the namespace that the request is for, which the object itself may leave open."""
    given = data.get("metadata") or {}
    if not isinstance(given, Mapping):
        return {**data}
    return {**data, "metadata": {**given, "namespace": request.namespace}}


def _name(data: Mapping[str, Any]) -> str:
    return str(_metadata(data).get("name") or "")


def _metadata(data: Mapping[str, Any]) -> Mapping[str, Any]:
    given = data.get("metadata")
    return given if isinstance(given, Mapping) else {}


def _queue(job: MPIJob) -> Patch:
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
