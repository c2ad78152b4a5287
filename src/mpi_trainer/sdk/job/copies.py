"""A job that was read somewhere, as a new one: the same, or with changes. Pure.

Ranks follow: where the command is `mpirun -n WORKERS×SLOTS …`, another number of workers or slots
changes that number too; any other command is the user's own and stays as it is.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds.annotations import ONE_JOB
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, MPIJob, to_wire
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml import load
from mpi_trainer.layout.launch import mpi_command
from mpi_trainer.sdk.job.specs import literal

J = TypeVar("J", MPIJob, TrainJob)
Object = dict[str, Any]


class Overrides(msgspec.Struct, frozen=True):
    """What a copy has instead of the original's; None leaves it as it is."""

    workers: int | None = None
    slots: int | None = None
    image: str | None = None
    command: tuple[str, ...] | None = None
    env: tuple[tuple[str, str], ...] = ()


def as_new(job: J) -> J:
    """The job without what a server wrote into it: `kubectl get -o yaml` has all of that."""
    meta = job.metadata
    kept = {k: v for k, v in meta.annotations.items() if k not in ONE_JOB}
    fresh = ObjectMeta(
        name=meta.name,
        generate_name=meta.generate_name,
        namespace=meta.namespace,
        labels=meta.labels,
        annotations=kept,
        finalizers=() if meta.uid else meta.finalizers,
        owner_references=() if meta.uid else meta.owner_references,
    )
    return msgspec.structs.replace(job, metadata=fresh, status=type(job)().status)


def copied(job: MPIJob, name: str, namespace: str, wanted: Overrides) -> Object:
    """The manifest of a new job like the old one, without its history; not judged yet."""
    wire = to_wire(job)
    wire.pop("status", None)
    notes = {k: v for k, v in job.metadata.annotations.items() if k not in ONE_JOB}
    wire["metadata"] = {
        "name": name,
        "namespace": namespace,
        "labels": wire["metadata"].get("labels") or {},
        "annotations": notes,
    }
    spec = wire["spec"]
    spec.get("runPolicy", {}).pop("suspend", None)
    replicas = spec["mpiReplicaSpecs"]
    before = job.workers * job.slots
    if wanted.workers is not None and WORKER in replicas:
        replicas[WORKER]["replicas"] = wanted.workers
    if wanted.slots is not None:
        spec["slotsPerWorker"] = wanted.slots
    ranks = _number(wanted.workers, job.workers) * _number(wanted.slots, job.slots)
    for role, replica in replicas.items():
        container = replica["template"]["spec"]["containers"][0]
        if wanted.image:
            container["image"] = wanted.image
        if wanted.env:
            container["env"] = _merged(container.get("env") or [], wanted.env)
        if role == LAUNCHER:
            _set_command(container, wanted.command, before, ranks)
    return wire


def sound(wire: Object) -> MPIJob:
    """The job of a manifest; InvalidJob where it makes none."""
    found = load.job(wire)
    if found.errors or not isinstance(found.value, MPIJob):
        raise InvalidJob(found.errors, found.warnings)
    return found.value


def _number(new: int | None, old: int) -> int:
    return old if new is None else new


def _set_command(
    container: Object, command: tuple[str, ...] | None, before: int, ranks: int
) -> None:
    if command is not None:
        container["command"] = [literal(word) for word in mpi_command(command, ranks)]
        container.pop("args", None)
        return
    words = container.get("command") or []
    if words[:3] == ["mpirun", "-n", str(before)]:
        container["command"] = ["mpirun", "-n", str(ranks), *words[3:]]


def _merged(old: list[Object], new: tuple[tuple[str, str], ...]) -> list[Object]:
    names = {name for name, _ in new}
    kept = [variable for variable in old if variable.get("name") not in names]
    return [*kept, *({"name": name, "value": literal(value)} for name, value in new)]
