"""A job file: text in, jobs with defaults out, or everything that is wrong with it at once.

A file may hold several MPIJobs, and the ConfigMaps and Secrets that they mount. Guarantee: a job
that comes out of `jobs` is structurally sound and valid; the only exception is `InvalidJob`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from mpi_trainer.api import companions, documents, validation
from mpi_trainer.api.companions import ConfigMap, Secret
from mpi_trainer.api.decode import Decoded, decode
from mpi_trainer.api.defaults import with_defaults
from mpi_trainer.api.documents import Document
from mpi_trainer.api.errors import (
    DUPLICATE,
    NOT_SUPPORTED,
    REQUIRED,
    FieldError,
    InvalidJob,
    Position,
    under,
)
from mpi_trainer.api.mpijob import API_VERSION, KIND, MPIJob
from mpi_trainer.api.spelling import nearest

_GROUP = "kubeflow.org/"
_TRAINER = "trainer.kubeflow.org/"
_KINDS = {KIND: API_VERSION, "ConfigMap": "v1", "Secret": "v1"}


class JobFile(msgspec.Struct, frozen=True):
    jobs: tuple[MPIJob, ...]
    config_maps: tuple[ConfigMap, ...] = ()
    secrets: tuple[Secret, ...] = ()
    warnings: tuple[FieldError, ...] = ()


class Found(msgspec.Struct, frozen=True):
    """One object read, and what was found on the way. Not to be used where there are errors."""

    value: MPIJob | ConfigMap | Secret | None
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[FieldError, ...] = ()
    named_at: Position | None = None


def jobs(text: str, source: str) -> JobFile:
    """All that `text` holds. `source` names it in messages, usually a file name."""
    read = [_read(document) for document in documents.parse(text, source)]
    errors = [error for found in read for error in found.errors]
    warnings = tuple(warning for found in read for warning in found.warnings)
    values = [found.value for found in read if found.value is not None]
    errors += _duplicates(read)
    if not errors and not any(isinstance(value, MPIJob) for value in values):
        rule = "the file holds no MPIJob"
        place = Position(source, 1, 1)
        remedy = f"add one, with `apiVersion: {API_VERSION}`"
        errors.append(FieldError((), REQUIRED, rule=rule, remedy=remedy, position=place))
    if errors:
        raise InvalidJob(errors, warnings)
    return JobFile(
        tuple(value for value in values if isinstance(value, MPIJob)),
        tuple(value for value in values if isinstance(value, ConfigMap)),
        tuple(value for value in values if isinstance(value, Secret)),
        warnings,
    )


def job(data: Mapping[str, Any]) -> Found:
    """An MPIJob from plain data, such as an API object or an admission request; never raises."""
    wrong = _identity_errors(data)
    if not wrong and data.get("kind") != KIND:
        rule = f"must be {KIND}"
        wrong = [FieldError(("kind",), NOT_SUPPORTED, data["kind"], rule, "send an MPIJob")]
    return Found(None, tuple(wrong)) if wrong else _job(data)


def _job(data: Mapping[str, Any]) -> Found:
    decoded = decode(MPIJob, data)
    value = with_defaults(decoded.value)
    errors = (*decoded.errors, *_beyond(decoded, validation.errors(value)))
    wrong = [error.path for error in errors]
    suspicions = (w for w in validation.warnings(value) if not under(w.path, wrong))
    return Found(value, errors, (*decoded.warnings, *_beyond(decoded, suspicions)))


def _companion(kind: type[ConfigMap] | type[Secret], data: Mapping[str, Any]) -> Found:
    decoded: Decoded[Any] = decode(kind, data)
    errors = (*decoded.errors, *_beyond(decoded, companions.errors(decoded.value)))
    return Found(decoded.value, errors, decoded.warnings)


def _beyond(decoded: Decoded[Any], found: Iterable[FieldError]) -> list[FieldError]:
    """`found`, less what only follows from a structural error."""
    return [error for error in found if not under(error.path, decoded.doubtful)]


def _read(document: Document) -> Found:
    data = document.data
    wrong = _identity_errors(data)
    if wrong:
        found = Found(None, tuple(wrong))
    elif data["kind"] == KIND:
        found = _job(data)
    else:
        found = _companion(ConfigMap if data["kind"] == "ConfigMap" else Secret, data)
    return Found(
        found.value,
        _located(document, found.errors),
        _located(document, found.warnings),
        document.position(("metadata", "name")),
    )


def _duplicates(read: Iterable[Found]) -> list[FieldError]:
    taken: set[tuple[str, str, str]] = set()
    errors = []
    for found in read:
        value = found.value
        if value is None or not value.metadata.name:
            continue
        key = (value.kind, value.metadata.namespace, value.metadata.name)
        if key in taken:
            rule = f"the file holds another {value.kind} of this name"
            error = FieldError(
                ("metadata", "name"), DUPLICATE, key[2], rule, "rename one", found.named_at
            )
            errors.append(error)
        taken.add(key)
    return errors


def _located(document: Document, found: Iterable[FieldError]) -> tuple[FieldError, ...]:
    placed = (msgspec.structs.replace(e, position=document.position(e.path)) for e in found)
    return tuple(sorted(placed, key=lambda e: e.position or document.position(())))


def _identity_errors(data: Mapping[str, Any]) -> list[FieldError]:
    missing = [
        FieldError((field,), REQUIRED, rule="must be set", remedy=f"add `{field}: {usual}`")
        for field, usual in (("apiVersion", API_VERSION), ("kind", KIND))
        if not isinstance(data.get(field), str) or not data[field]
    ]
    if missing:
        return missing
    version, kind = data["apiVersion"], data["kind"]
    if kind in _KINDS and version == _KINDS[kind]:
        return []
    if kind == KIND and version.startswith(_GROUP):
        rule = f"only {API_VERSION} is served"
        return [FieldError(("apiVersion",), NOT_SUPPORTED, version, rule, _LEGACY)]
    if version.startswith(_TRAINER):
        rule, remedy = f"{kind} is not supported yet", "write the job as an MPIJob"
        return [FieldError(("kind",), NOT_SUPPORTED, kind, rule, remedy)]
    if kind in _KINDS:
        rule = f"a {kind} has the apiVersion {_KINDS[kind]}"
        remedy = f"write `apiVersion: {_KINDS[kind]}`"
        return [FieldError(("apiVersion",), NOT_SUPPORTED, version, rule, remedy)]
    meant = nearest(kind, _KINDS)
    rule = "a job file holds MPIJobs, ConfigMaps and Secrets only"
    remedy = f"did you mean `{meant}`?" if meant else "keep other objects in a file of their own"
    return [FieldError(("kind",), NOT_SUPPORTED, kind, rule, remedy)]


_LEGACY = (
    f"write `apiVersion: {API_VERSION}` and move cleanPodPolicy, backoffLimit,"
    " activeDeadlineSeconds and ttlSecondsAfterFinished under spec.runPolicy"
)
