"""A job file: text in, jobs with defaults out, or everything that is wrong with it at once.

A file may hold several jobs, the ConfigMaps and Secrets that they mount, and runtimes. `jobs` takes
MPIJobs only, `objects` TrainJobs and runtimes too. Guarantee: a job that comes out is structurally
sound and valid; the only exception is `InvalidJob`. Danger: whether a TrainJob fits its runtime is
known only where the runtime is: in the file, or given by the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from mpi_trainer.api.defaults import mpijob_with_defaults
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
from mpi_trainer.api.validation import mpijob as mpijob_rules
from mpi_trainer.api.validation import mpijob_warnings, size
from mpi_trainer.api.yaml import attachments, documents
from mpi_trainer.api.yaml.attachments import CONFIG_MAP, SECRET, ConfigMap, Secret
from mpi_trainer.api.yaml.decode import Decoded, decode
from mpi_trainer.api.yaml.documents import Document
from mpi_trainer.api.yaml.loaded import LoadedObject, beyond, located

if TYPE_CHECKING:
    from mpi_trainer.api.kinds.runtime import Runtime
    from mpi_trainer.api.kinds.trainjob import TrainJob


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
    errors = (*decoded.errors, *beyond(decoded, mpijob_rules.errors(value)))
    wrong = [error.path for error in errors]
    suspicions = (w for w in mpijob_warnings.warnings(value) if not under(w.path, wrong))
    return LoadedObject(value, errors, (*decoded.warnings, *beyond(decoded, suspicions)))


def _train_job(data: Mapping[str, Any]) -> LoadedObject:
    from mpi_trainer.api.yaml import load_trainer

    return load_trainer.train_job(data)


def _runtime(data: Mapping[str, Any]) -> LoadedObject:
    from mpi_trainer.api.yaml import load_trainer

    return load_trainer.runtime(data)


def _config_map(data: Mapping[str, Any]) -> LoadedObject:
    return _companion(ConfigMap, data)


def _secret(data: Mapping[str, Any]) -> LoadedObject:
    return _companion(Secret, data)


def _companion(kind: type[ConfigMap] | type[Secret], data: Mapping[str, Any]) -> LoadedObject:
    decoded: Decoded[Any] = decode(kind, data)
    errors = (*decoded.errors, *beyond(decoded, attachments.errors(decoded.value)))
    return LoadedObject(decoded.value, errors, decoded.warnings)


_READERS = {
    KIND: _job,
    trainjob.KIND: _train_job,
    **dict.fromkeys(runtime_kinds.KINDS, _runtime),
    CONFIG_MAP: _config_map,
    SECRET: _secret,
}


def _file(text: str, source: str, kinds: Kinds, runtimes: Sequence[Runtime] = ()) -> JobFile:
    parsed = documents.parse(text, source)
    read = [_read(document, kinds) for document in parsed]
    if trainjob.KIND in kinds:
        from mpi_trainer.api.yaml import load_trainer

        read = load_trainer.fitted(read, parsed, runtimes)
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
        *(load_trainer.apart(values) if trainjob.KIND in kinds else ()),
    )


def _read(document: Document, kinds: Kinds) -> LoadedObject:
    data = document.data
    wrong = [*identity.errors(data, kinds), *size.errors(data)]
    found = LoadedObject(None, tuple(wrong)) if wrong else _READERS[data["kind"]](data)
    return LoadedObject(
        found.value,
        located(document, found.errors),
        located(document, found.warnings),
        document.position(("metadata", "name")),
    )


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
