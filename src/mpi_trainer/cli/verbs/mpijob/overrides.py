"""Changes to a job that exists, for a copy of it, as the command line gives them. Pure."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import click

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.sdk.job import copies

_PART = re.compile(r"([^.\[\]]+)|\[(\d{1,6})\]")


class Overrides(copies.Overrides, frozen=True):
    """`settings` are fields by their paths."""

    settings: tuple[tuple[str, str], ...] = ()


def clone(job: MPIJob, name: str, namespace: str, wanted: Overrides) -> MPIJob:
    """A new job like the old one, without its history. Raises InvalidJob where it makes none."""
    wire = copies.copied(job, name, namespace, wanted)
    for path, value in wanted.settings:
        assign(wire, path, value)
    return copies.sound(wire)


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
