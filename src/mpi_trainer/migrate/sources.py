"""Which descriptions a text holds, and what each becomes.

A text may be a file of several documents, a `kind: List`, what Helm renders, JSON or YAML. What is
not a job of a kind that is known here is passed over and counted. Guarantee: `migrated` raises
`InvalidJob` only for text that is no YAML; whatever else is wrong is in `Converted.errors`, with
the place in the text. Linear in the size of the text, which `documents` bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from mpi_trainer.api.errors import DUPLICATE, FieldError, Position
from mpi_trainer.api.kinds import mpijob
from mpi_trainer.api.yaml import documents
from mpi_trainer.api.yaml.documents import Document
from mpi_trainer.migrate import azureml, legacy_kinds, sagemaker
from mpi_trainer.migrate.instances import INSTANCES, Instances
from mpi_trainer.migrate.legacy import to_v2beta1
from mpi_trainer.migrate.report import CARRIED, Converted, Object
from mpi_trainer.migrate.trainjob import to_trainjob
from mpi_trainer.migrate.unknown_fields import left_out

replace = msgspec.structs.replace

Target = Literal["mpijob", "trainjob"]
MPIJOB: Final = "mpijob"
TRAINJOB: Final = "trainjob"
TARGETS: Final = (MPIJOB, TRAINJOB)

Key = tuple[str, str, str]
Converter = Callable[[Mapping[str, Any], Instances], Converted]


class Migrated(msgspec.Struct, frozen=True):
    """`passed`: how many documents of which kind were passed over."""

    jobs: tuple[Converted, ...]
    passed: Mapping[str, int] = {}

    @property
    def sound(self) -> bool:
        return not any(job.errors for job in self.jobs)


def migrated(
    text: str, source: str, to: Target | None = None, table: Instances = INSTANCES
) -> Migrated:
    """`to` is for what could become more than one kind: an MPIJob, or a TrainJob by way of one."""
    jobs: list[Converted] = []
    passed: Counter[str] = Counter()
    every = (one for document in documents.parse(text, source) for one in documents.items(document))
    for document in every:
        found = converted(document.data, to, table)
        if found is None:
            passed[_kind(document.data)] += 1
        else:
            jobs.append(_located(document, found))
    return Migrated(tuple(jobs), dict(passed))


def together(every: Iterable[Migrated]) -> Migrated:
    """As one; what would be a second object of one kind, namespace and name is an error."""
    jobs: list[Converted] = []
    passed: Counter[str] = Counter()
    taken: dict[Key, Converted] = {}
    for one in every:
        passed.update(one.passed)
        for job in one.jobs:
            keys = [*map(_key, job.objects)]
            other = next((taken[key] for key in keys if key in taken), None)
            if other is None:
                taken.update(dict.fromkeys(keys, job))
                jobs.append(job)
            else:
                jobs.append(replace(job, objects=(), fields=(), errors=(_second(job, other),)))
    return Migrated(tuple(jobs), dict(passed))


def _key(made: Object) -> Key:
    meta = made["metadata"]
    return made["kind"], meta.get("namespace", ""), meta.get("name") or meta["generateName"]


def _second(job: Converted, other: Converted) -> FieldError:
    at = f" at {other.place}" if other.place else ""
    rule = f"what it becomes has the name of what `{other.name}`{at} becomes"
    return FieldError(
        ("metadata", "name"), DUPLICATE, job.name, rule, "rename one", position=job.place
    )


def converted(
    data: Mapping[str, Any], to: Target | None = None, table: Instances = INSTANCES
) -> Converted | None:
    """One description as plain data; None where there is nothing to do for it. Never raises."""
    converter = _converter(data)
    if converter is None:
        return None
    if data.get("apiVersion") == mpijob.API_VERSION:
        return None if to == MPIJOB else left_out(to_trainjob, data)
    return _further(converter(data, table), to)


def _further(made: Converted, to: Target | None) -> Converted:
    """By way of an MPIJob. Of the second step only what changed is told."""
    if to != TRAINJOB or made.errors:
        return made
    (through,) = made.objects
    second = to_trainjob(through)
    if second.errors:
        return replace(made, objects=(), fields=(), errors=second.errors)
    later = (replace(f, of=mpijob.KIND) for f in second.fields if f.fate != CARRIED)
    return replace(
        made, objects=second.objects, fields=(*made.fields, *later), through=second.through
    )


def _legacy(data: Mapping[str, Any], _table: Instances) -> Converted:
    return left_out(to_v2beta1, data)


def _current(data: Mapping[str, Any], _table: Instances) -> Converted:
    return to_trainjob(data)


def _converter(data: Mapping[str, Any]) -> Converter | None:
    if data.get("kind") == mpijob.KIND:
        version = data.get("apiVersion")
        if version in legacy_kinds.VERSIONS:
            return _legacy
        # One without a version, or with a wrong one, is refused in the words of validation.
        group = version.partition("/")[0] if isinstance(version, str) else "kubeflow.org"
        return _current if group == "kubeflow.org" else None
    if "kind" in data and "apiVersion" in data:
        return None
    if sagemaker.is_request(data):
        return sagemaker.to_mpijob
    return azureml.to_mpijob if azureml.is_job(data) else None


def _kind(data: Mapping[str, Any]) -> str:
    kind = data.get("kind")
    return kind if isinstance(kind, str) and kind else "unknown"


def _located(document: Document, job: Converted) -> Converted:
    def place(error: FieldError) -> Position:
        return document.position(error.path)

    errors: Sequence[FieldError] = [replace(e, position=place(e)) for e in job.errors]
    name = document.position(("metadata", "name"))
    return replace(job, errors=tuple(errors), place=name)
