"""A job file: text in, jobs with defaults out, or everything that is wrong with it at once.

A file may hold several jobs, the ConfigMaps and Secrets that they mount, and runtimes. `jobs` takes
MPIJobs only, `objects` TrainJobs and runtimes too. Guarantee: a job that comes out is structurally
sound and valid; the only exception is `InvalidJob`. Danger: whether a TrainJob fits its runtime is
known only where the runtime is: in the file, or given by the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from mpi_trainer.api import companions, documents, identity, trainerdefaults, validation
from mpi_trainer.api.companions import CONFIG_MAP, SECRET, ConfigMap, Secret
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
from mpi_trainer.api.identity import ANY_FILE, MPIJOB_FILE, Kinds
from mpi_trainer.api.mpijob import KIND, MPIJob
from mpi_trainer.api.runtime import KINDS, Runtime, serves
from mpi_trainer.api.trainjob import KIND as TRAIN_KIND
from mpi_trainer.api.trainjob import TrainJob
from mpi_trainer.api.validation import fitting
from mpi_trainer.api.validation import runtime as runtime_rules
from mpi_trainer.api.validation import trainjob as train_job_rules

Value = MPIJob | TrainJob | Runtime | ConfigMap | Secret


class JobFile(msgspec.Struct, frozen=True):
    jobs: tuple[MPIJob, ...]
    config_maps: tuple[ConfigMap, ...] = ()
    secrets: tuple[Secret, ...] = ()
    warnings: tuple[FieldError, ...] = ()
    train_jobs: tuple[TrainJob, ...] = ()
    runtimes: tuple[Runtime, ...] = ()


class Found(msgspec.Struct, frozen=True):
    """One object read, and what was found on the way. Not to be used where there are errors."""

    value: Value | None
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[FieldError, ...] = ()
    named_at: Position | None = None


def jobs(text: str, source: str) -> JobFile:
    """The MPIJobs that `text` holds, and what they mount. `source` names it in messages."""
    return _file(text, source, MPIJOB_FILE)


def objects(text: str, source: str, runtimes: Sequence[Runtime] = ()) -> JobFile:
    """All that `text` holds, TrainJobs and runtimes too; a runtime alone is a sound file.

    A TrainJob is judged together with its runtime where that is in the text or in `runtimes`.
    """
    return _file(text, source, ANY_FILE, runtimes)


def job(data: Mapping[str, Any]) -> Found:
    """An MPIJob from plain data, such as an API object or an admission request; never raises."""
    return _one(data, KIND)


def train_job(data: Mapping[str, Any]) -> Found:
    """A TrainJob from plain data, judged without its runtime; never raises."""
    return _one(data, TRAIN_KIND)


def runtime(data: Mapping[str, Any]) -> Found:
    """A runtime of either kind from plain data; never raises."""
    return _one(data, *KINDS)


def _one(data: Mapping[str, Any], *kinds: str) -> Found:
    wrong = identity.errors(data, ANY_FILE)
    if not wrong and data.get("kind") not in kinds:
        rule = f"must be {' or '.join(kinds)}"
        remedy = f"send {'an' if kinds[0] == KIND else 'a'} {kinds[0]}"
        wrong = [FieldError(("kind",), NOT_SUPPORTED, data["kind"], rule, remedy)]
    return Found(None, tuple(wrong)) if wrong else _READERS[data["kind"]](data)


def _job(data: Mapping[str, Any]) -> Found:
    decoded = decode(MPIJob, data)
    value = with_defaults(decoded.value)
    errors = (*decoded.errors, *_beyond(decoded, validation.errors(value)))
    wrong = [error.path for error in errors]
    suspicions = (w for w in validation.warnings(value) if not under(w.path, wrong))
    return Found(value, errors, (*decoded.warnings, *_beyond(decoded, suspicions)))


def _train_job(data: Mapping[str, Any]) -> Found:
    decoded = decode(TrainJob, data)
    value = trainerdefaults.of_job(decoded.value)
    errors = (*decoded.errors, *_beyond(decoded, train_job_rules.errors(value)))
    return Found(value, errors, decoded.warnings)


def _runtime(data: Mapping[str, Any]) -> Found:
    decoded = decode(Runtime, data)
    value = trainerdefaults.of_runtime(decoded.value)
    errors = (*decoded.errors, *_beyond(decoded, runtime_rules.errors(value)))
    suspicions = () if errors else runtime_rules.warnings(value)
    return Found(value, errors, (*decoded.warnings, *suspicions))


def _config_map(data: Mapping[str, Any]) -> Found:
    return _companion(ConfigMap, data)


def _secret(data: Mapping[str, Any]) -> Found:
    return _companion(Secret, data)


def _companion(kind: type[ConfigMap] | type[Secret], data: Mapping[str, Any]) -> Found:
    decoded: Decoded[Any] = decode(kind, data)
    errors = (*decoded.errors, *_beyond(decoded, companions.errors(decoded.value)))
    return Found(decoded.value, errors, decoded.warnings)


_READERS = {
    KIND: _job,
    TRAIN_KIND: _train_job,
    **dict.fromkeys(KINDS, _runtime),
    CONFIG_MAP: _config_map,
    SECRET: _secret,
}


def _beyond(decoded: Decoded[Any], found: Iterable[FieldError]) -> list[FieldError]:
    """`found`, less what only follows from a structural error."""
    return [error for error in found if not under(error.path, decoded.doubtful)]


def _file(text: str, source: str, kinds: Kinds, runtimes: Sequence[Runtime] = ()) -> JobFile:
    parsed = documents.parse(text, source)
    read = [_read(document, kinds) for document in parsed]
    known = (*(f.value for f in read if isinstance(f.value, Runtime) and not f.errors), *runtimes)
    read = [_fitted(found, document, known) for found, document in zip(read, parsed, strict=True)]
    errors = [error for found in read for error in found.errors]
    warnings = tuple(warning for found in read for warning in found.warnings)
    values = [found.value for found in read if found.value is not None]
    errors += _duplicates(read)
    if not errors and all(isinstance(value, ConfigMap | Secret) for value in values):
        usual, version = next(iter(kinds.items()))
        rule = f"the file holds no {usual}"
        place = Position(source, 1, 1)
        remedy = f"add one, with `apiVersion: {version}`"
        errors.append(FieldError((), REQUIRED, rule=rule, remedy=remedy, position=place))
    if errors:
        raise InvalidJob(errors, warnings)
    return JobFile(
        tuple(value for value in values if isinstance(value, MPIJob)),
        tuple(value for value in values if isinstance(value, ConfigMap)),
        tuple(value for value in values if isinstance(value, Secret)),
        warnings,
        tuple(value for value in values if isinstance(value, TrainJob)),
        tuple(value for value in values if isinstance(value, Runtime)),
    )


def _read(document: Document, kinds: Kinds) -> Found:
    data = document.data
    wrong = identity.errors(data, kinds)
    found = Found(None, tuple(wrong)) if wrong else _READERS[data["kind"]](data)
    return Found(
        found.value,
        _located(document, found.errors),
        _located(document, found.warnings),
        document.position(("metadata", "name")),
    )


def _fitted(found: Found, document: Document, known: Iterable[Runtime]) -> Found:
    """A sound TrainJob judged with its runtime, where that is known."""
    job = found.value
    if found.errors or not isinstance(job, TrainJob):
        return found
    runtime = next((one for one in known if serves(one, job)), None)
    if runtime is None:
        return found
    errors = _located(document, fitting.errors(job, runtime))
    told = () if errors else _located(document, fitting.warnings(job, runtime))
    return Found(job, errors, (*found.warnings, *told), found.named_at)


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
