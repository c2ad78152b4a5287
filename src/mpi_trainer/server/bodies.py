"""What callers send: jobs and job files, as JSON or YAML. Pure.

Guarantee: what comes out is sound and bounded; everything that is wrong is said at once, with its
field and, in YAML, its line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from mpi_trainer.api.errors import INVALID, SYNTAX, FieldError, InvalidJob
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml import load, typed
from mpi_trainer.api.yaml.load import JobFile, LoadedObject
from mpi_trainer.sdk.job.copies import as_new
from mpi_trainer.server.endpoint import JSON, YAML
from mpi_trainer.server.problems import refused

SOURCE = "body"
MOST = 100
"""objects of one body: each may be wrong in many ways, and all are told"""
J = TypeVar("J", MPIJob, TrainJob)
T = TypeVar("T")
replace = msgspec.structs.replace


def job_file(body: bytes, media_type: str) -> JobFile:
    """All objects of a job file; JSON holds one, or a List."""
    if media_type in YAML:
        return load.objects(_text(body), SOURCE)
    data = _json(body)
    items = data.get("items") if data.get("kind") == "List" else [data]
    items = items if isinstance(items, list) else [data]
    if len(items) > MOST:
        hint = f"Send at most {MOST} in each call."
        raise refused(422, "invalid-job", f"the list has {len(items)} objects", hint)
    found = [_loaded(one) for one in items]
    errors = [error for one in found for error in one.errors]
    warnings = tuple(warning for one in found for warning in one.warnings)
    if errors:
        raise InvalidJob(errors, warnings)
    values = [one.value for one in found]
    return JobFile(
        tuple(one for one in values if isinstance(one, MPIJob)),
        warnings=warnings,
        train_jobs=tuple(one for one in values if isinstance(one, TrainJob)),
        runtimes=tuple(one for one in values if isinstance(one, Runtime)),
    )


def job(body: bytes, media_type: str, kind: type[J], namespace: str) -> J:
    """The one job of a body, as a new one, in the namespace of the path."""
    file: JobFile = job_file(body, media_type)
    found: tuple[Any, ...] = (*file.jobs, *file.train_jobs)
    others = (*file.config_maps, *file.secrets, *file.runtimes)
    if len(found) != 1 or others or not isinstance(found[0], kind):
        raise refused(
            422,
            "invalid-job",
            f"the body must hold one {kind.__name__} and nothing else",
            f"Send one {kind.__name__} in each call, as kubectl takes it.",
        )
    return _placed(as_new(found[0]), namespace)


def value(body: bytes, kind: type[T]) -> T:
    """A value of ours from JSON."""
    try:
        return typed.decode(_text(body), kind)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$")
        field = tuple(filter(None, path.rstrip("`").strip(".").split(".")))
        raise InvalidJob([FieldError(field, INVALID, rule=text)]) from None
    except msgspec.DecodeError as error:
        raise _malformed(str(error)) from None


def check_media_type(media_type: str) -> None:
    if media_type not in (JSON, *YAML):
        raise refused(
            415,
            "media-type",
            f"a body of type {media_type or 'none'} cannot be read",
            f"Send Content-Type: {JSON} or {YAML[0]}.",
        )


def _loaded(data: Any) -> LoadedObject:
    if not isinstance(data, Mapping):
        rule = "must be an object with apiVersion and kind"
        return LoadedObject(None, (FieldError((), INVALID, rule=rule),))
    readers = {"TrainJob": load.train_job, "MPIJob": load.job}
    word = data.get("kind")
    return readers.get(word if isinstance(word, str) else "", _any)(data)


def _any(data: Mapping[str, Any]) -> LoadedObject:
    """A runtime; of anything else, what would be right."""
    word = data.get("kind")
    runtime = isinstance(word, str) and word.endswith("Runtime")
    return load.runtime(data) if runtime else load.job(data)


def _placed(job: J, namespace: str) -> J:
    said = job.metadata.namespace
    if said and said != namespace:
        path, rule = ("metadata", "namespace"), f"must be {namespace}, as in the address"
        raise InvalidJob([FieldError(path, INVALID, said, rule, "leave it out")])
    return replace(job, metadata=replace(job.metadata, namespace=namespace))


def _json(body: bytes) -> dict[str, Any]:
    try:
        data: dict[str, Any] = typed.decode(_text(body), dict)
    except msgspec.MsgspecError as error:
        raise _malformed(str(error)) from None
    return data


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _malformed(f"it is not UTF-8 (byte {error.start})") from None


def _malformed(why: str) -> Exception:
    error = FieldError(
        (), SYNTAX, rule=why, remedy="send one object as JSON, or YAML with its type"
    )
    return refused(400, "malformed", f"the body cannot be read: {why}", errors=[error])
