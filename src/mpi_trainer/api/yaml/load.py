"""A job file: text in, jobs with defaults out, or everything that is wrong with it at once.

A file may hold several jobs, the ConfigMaps and Secrets that they mount, and runtimes. `jobs` takes
MPIJobs only, `objects` TrainJobs and runtimes too. Guarantee: a job that comes out is structurally
sound and valid; the only exception is `InvalidJob`. Danger: whether a TrainJob fits its runtime is
known only where the runtime is: in the file, or given by the caller.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.defaults import (
    mpijob_with_defaults,
    runtime_with_defaults,
    trainjob_with_defaults,
)
from mpi_trainer.api.errors import (
    DUPLICATE,
    NOT_SUPPORTED,
    REQUIRED,
    FieldError,
    InvalidJob,
    Position,
    under,
)
from mpi_trainer.api.kinds import identity, trainjob
from mpi_trainer.api.kinds import runtime as runtime_kinds
from mpi_trainer.api.kinds.identity import ANY_FILE, MPIJOB_FILE, Kinds
from mpi_trainer.api.kinds.mpijob import KIND, MPIJob
from mpi_trainer.api.kinds.runtime import Runtime, serves
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation import compatibility, mpijob_warnings, size, worker_limits
from mpi_trainer.api.validation import mpijob as mpijob_rules
from mpi_trainer.api.validation import runtime as runtime_rules
from mpi_trainer.api.validation import trainjob as trainjob_rules
from mpi_trainer.api.yaml import attachments, documents
from mpi_trainer.api.yaml.attachments import CONFIG_MAP, SECRET, ConfigMap, Secret
from mpi_trainer.api.yaml.decode import Decoded, decode
from mpi_trainer.api.yaml.documents import Document


class LoadedObject(msgspec.Struct, frozen=True):
    """One object read, and what was found on the way. Not to be used where there are errors."""

    value: MPIJob | TrainJob | Runtime | ConfigMap | Secret | None
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[FieldError, ...] = ()
    named_at: Position | None = None


class JobFile(msgspec.Struct, frozen=True):
    jobs: tuple[MPIJob, ...]
    config_maps: tuple[ConfigMap, ...] = ()
    secrets: tuple[Secret, ...] = ()
    warnings: tuple[FieldError, ...] = ()
    train_jobs: tuple[TrainJob, ...] = ()
    runtimes: tuple[Runtime, ...] = ()


def jobs(text: str, source: str) -> JobFile:
    """The MPIJobs that `text` holds, and what they mount. `source` names it in messages."""
    return _file(text, source, MPIJOB_FILE)


def objects(text: str, source: str, runtimes: Sequence[Runtime] = ()) -> JobFile:
    """All that `text` holds, TrainJobs and runtimes too; a runtime alone is a sound file.

    A TrainJob is judged together with its runtime where that is in the text or in `runtimes`.
    """
    return _file(text, source, ANY_FILE, runtimes)


def job(data: Mapping[str, Any]) -> LoadedObject:
    """An MPIJob from plain data, such as an API object or an admission request; never raises."""
    return _one(data, KIND)


def train_job(data: Mapping[str, Any]) -> LoadedObject:
    """A TrainJob from plain data, judged without its runtime; never raises."""
    return _one(data, trainjob.KIND)


def runtime(data: Mapping[str, Any]) -> LoadedObject:
    """A runtime of either kind from plain data; never raises."""
    return _one(data, *runtime_kinds.KINDS)


def _one(data: Mapping[str, Any], *kinds: str) -> LoadedObject:
    wrong = [*identity.errors(data, ANY_FILE), *size.errors(data)]
    if not wrong and data.get("kind") not in kinds:
        rule = f"must be {' or '.join(kinds)}"
        remedy = f"send {'an' if kinds[0] == KIND else 'a'} {kinds[0]}"
        wrong = [FieldError(("kind",), NOT_SUPPORTED, data["kind"], rule, remedy)]
    return LoadedObject(None, tuple(wrong)) if wrong else _READERS[data["kind"]](data)


def _job(data: Mapping[str, Any]) -> LoadedObject:
    decoded = decode(MPIJob, data)
    value = mpijob_with_defaults(decoded.value)
    errors = (*decoded.errors, *_independent(decoded, mpijob_rules.errors(value)))
    wrong = [error.path for error in errors]
    warnings = (w for w in mpijob_warnings.warnings(value) if not under(w.path, wrong))
    return LoadedObject(value, errors, (*decoded.warnings, *_independent(decoded, warnings)))


def _train_job(data: Mapping[str, Any]) -> LoadedObject:
    decoded = decode(TrainJob, data)
    value = trainjob_with_defaults(decoded.value)
    errors = (*decoded.errors, *_independent(decoded, trainjob_rules.errors(value)))
    return LoadedObject(value, errors, decoded.warnings)


def _runtime(data: Mapping[str, Any]) -> LoadedObject:
    decoded = decode(Runtime, data)
    value = runtime_with_defaults(decoded.value)
    errors = (*decoded.errors, *_independent(decoded, runtime_rules.errors(value)))
    warnings = () if errors else runtime_rules.warnings(value)
    return LoadedObject(value, errors, (*decoded.warnings, *warnings))


def _config_map(data: Mapping[str, Any]) -> LoadedObject:
    return _attachment(ConfigMap, data)


def _secret(data: Mapping[str, Any]) -> LoadedObject:
    return _attachment(Secret, data)


def _attachment(kind: type[ConfigMap] | type[Secret], data: Mapping[str, Any]) -> LoadedObject:
    decoded: Decoded[Any] = decode(kind, data)
    errors = (*decoded.errors, *_independent(decoded, attachments.errors(decoded.value)))
    return LoadedObject(decoded.value, errors, decoded.warnings)


_READERS = {
    KIND: _job,
    trainjob.KIND: _train_job,
    **dict.fromkeys(runtime_kinds.KINDS, _runtime),
    CONFIG_MAP: _config_map,
    SECRET: _secret,
}


def _file(text: str, source: str, kinds: Kinds, runtimes: Sequence[Runtime] = ()) -> JobFile:
    whole = documents.parse(text, source)
    parsed = [one for document in whole for one in documents.items(document)]
    read = [_read(document, kinds) for document in parsed]
    if trainjob.KIND in kinds:
        read = _judged_with_runtimes(read, parsed, runtimes)
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


def _read(document: Document, kinds: Kinds) -> LoadedObject:
    data = document.data
    wrong = [*identity.errors(data, kinds), *size.errors(data)]
    found = LoadedObject(None, tuple(wrong)) if wrong else _READERS[data["kind"]](data)
    return LoadedObject(
        found.value,
        _located(document, found.errors),
        _located(document, (*found.warnings, *_many_workers(found.value))),
        document.position(("metadata", "name")),
    )


def _many_workers(value: object) -> Iterable[FieldError]:
    """By the usual limit; a cluster's own is for its admission to say."""
    if isinstance(value, MPIJob):
        return worker_limits.mpijob_warnings(value)
    return worker_limits.trainjob_warnings(value) if isinstance(value, TrainJob) else ()


def _judged_with_runtimes(
    read: Sequence[LoadedObject], parsed: Sequence[Document], runtimes: Iterable[Runtime]
) -> list[LoadedObject]:
    """Sound TrainJobs judged with their runtimes, where those were read too or are given."""
    known = (*(f.value for f in read if isinstance(f.value, Runtime) and not f.errors), *runtimes)
    return [
        _judged_with_runtime(found, document, known)
        for found, document in zip(read, parsed, strict=True)
    ]


def _judged_with_runtime(
    found: LoadedObject, document: Document, known: Iterable[Runtime]
) -> LoadedObject:
    job = found.value
    if found.errors or not isinstance(job, TrainJob):
        return found
    fitting = next((one for one in known if serves(one, job)), None)
    if fitting is None:
        return found
    errors = _located(document, compatibility.errors(job, fitting))
    warnings = () if errors else _located(document, compatibility.warnings(job, fitting))
    return LoadedObject(job, errors, (*found.warnings, *warnings), found.named_at)


def _duplicates(read: Iterable[LoadedObject]) -> list[FieldError]:
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


def _independent(decoded: Decoded[Any], found: Iterable[FieldError]) -> list[FieldError]:
    """`found`, less what only follows from a structural error; as many as anybody reads."""
    left = (error for error in found if not under(error.path, decoded.doubtful))
    return list(itertools.islice(left, bounds.ERRORS))


def _located(document: Document, found: Iterable[FieldError]) -> tuple[FieldError, ...]:
    """`found` with the places where the document has the fields, in their order."""
    placed = (msgspec.structs.replace(e, position=document.position(e.path)) for e in found)
    return tuple(sorted(placed, key=lambda e: e.position or document.position(())))
