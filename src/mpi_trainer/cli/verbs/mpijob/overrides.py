"""Changes to a job that exists, for a copy of it. Pure.

Ranks follow: where the command is `mpirun -n WORKERS×SLOTS …`, another number of workers or slots
changes that number too; any other command is the user's own and stays as it is.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import click
import msgspec

from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds.annotations import ONE_JOB
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, MPIJob, to_wire
from mpi_trainer.api.yaml import load
from mpi_trainer.layout.launch import mpi_command
from mpi_trainer.sdk.job.specs import literal

_PART = re.compile(r"([^.\[\]]+)|\[(\d{1,6})\]")


class Overrides(msgspec.Struct, frozen=True):
    workers: int | None = None
    slots: int | None = None
    image: str | None = None
    command: tuple[str, ...] | None = None
    env: tuple[tuple[str, str], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()


def clone(job: MPIJob, name: str, namespace: str, wanted: Overrides) -> MPIJob:
    """A new job like the old one, without its history. Raises InvalidJob where it makes none."""
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
            _command(container, wanted.command, before, ranks)
    for path, value in wanted.settings:
        assign(wire, path, value)
    found = load.job(wire)
    if found.errors or not isinstance(found.value, MPIJob):
        raise InvalidJob(found.errors, found.warnings)
    return found.value


def _number(new: int | None, old: int) -> int:
    return old if new is None else new


def _command(
    container: dict[str, Any], command: tuple[str, ...] | None, before: int, ranks: int
) -> None:
    if command is not None:
        container["command"] = [literal(word) for word in mpi_command(command, ranks)]
        container.pop("args", None)
        return
    words = container.get("command") or []
    if words[:3] == ["mpirun", "-n", str(before)]:
        container["command"] = ["mpirun", "-n", str(ranks), *words[3:]]


def _merged(old: list[dict[str, Any]], new: tuple[tuple[str, str], ...]) -> list[dict[str, Any]]:
    names = {name for name, _ in new}
    kept = [variable for variable in old if variable.get("name") not in names]
    return [*kept, *({"name": name, "value": literal(value)} for name, value in new)]


def assign(data: dict[str, Any], path: str, text: str) -> None:
    """Sets `spec.runPolicy.backoffLimit=0` and the like; the value is JSON where it reads so."""
    parts = [int(index) if index else name for name, index in _PART.findall(path)]
    rebuilt = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in parts).lstrip(".")
    if not parts or rebuilt != path:
        raise click.UsageError(f"{path!r} is not a path such as spec.runPolicy.backoffLimit")
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    place: Any = data
    for number, part in enumerate(parts):
        fits = isinstance(place, dict) if isinstance(part, str) else isinstance(place, list)
        if not fits or (isinstance(part, int) and part >= len(place)):
            raise _no_place(parts[: number + 1])
        if number == len(parts) - 1:
            place[part] = value
        else:
            place = place.setdefault(part, {}) if isinstance(part, str) else place[part]


def _no_place(parts: list[str | int]) -> click.UsageError:
    shown = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in parts).lstrip(".")
    return click.UsageError(f"--set: the job has no {shown}")


def split_command(line: str) -> tuple[str, ...]:
    """The words of a quoted command line; no shell looks at it."""
    try:
        words = tuple(shlex.split(line))
    except ValueError as error:
        raise click.UsageError(f"--command {line!r}: {error}") from error
    if not words:
        raise click.UsageError("--command is empty; give a command such as 'python train.py'")
    return words
