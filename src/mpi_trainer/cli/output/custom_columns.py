"""`-o custom-columns=` and `--sort-by`: paths into a job, as kubectl has them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mpi_trainer.api.spelling import nearest
from mpi_trainer.cli.output.formats import Column
from mpi_trainer.cli.output.jsonpath import BadPath, Path, shown

OF_OBJECTS = ("apiVersion", "kind", "metadata", "spec", "status")
OF_LISTS = (
    *("name", "namespace", "state", "reason", "message", "created", "started", "completed"),
    *("workers", "slots", "implementation", "progress"),
)
"""what a list adds to every object"""
NONE = "<none>"


def parse(text: str) -> tuple[Column, ...]:
    """`NAME:.metadata.name,STATE:.state`; BadPath where it says no columns."""
    columns = []
    for part in text.split(","):
        header, colon, path = part.partition(":")
        if not colon or not header.strip() or not path.strip():
            raise BadPath(
                f"{part!r} is not HEADER:PATH; write columns such as "
                "NAME:.metadata.name,STATE:.state"
            )
        job_path(path)
        columns.append(Column(header.strip(), path.strip()))
    return tuple(columns)


def job_path(text: str) -> Path:
    """A path that begins with a field which jobs have."""
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1].strip()
    path = Path(inner)
    known = (*OF_OBJECTS, *OF_LISTS)
    if path.field in known:
        return path
    meant = nearest(path.field, known)
    raise BadPath(
        f"{text.strip()!r} does not begin with a field of a job"
        + (f"; did you mean `.{meant}`?" if meant else f"; they are {', '.join(known)}")
    )


def rows(columns: Sequence[Column], objects: Iterable[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """A row for each object; `<none>` where it has no such field."""
    paths = [job_path(column.path) for column in columns]
    return [tuple(_cell(path.values(each)) for path in paths) for each in objects]


def _cell(values: Sequence[Any]) -> str:
    present = [value for value in values if value is not None]
    return ",".join(map(shown, present)) if present else NONE
