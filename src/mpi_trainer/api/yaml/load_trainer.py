"""TrainJobs and runtimes from plain data, each by itself and one with the other.

Apart from `load`, so that a file of MPIJobs does not pay for what it does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mpi_trainer.api.defaults import runtime_with_defaults, trainjob_with_defaults
from mpi_trainer.api.kinds.runtime import Runtime, serves
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation import compatibility
from mpi_trainer.api.validation import runtime as runtime_rules
from mpi_trainer.api.validation import trainjob as train_job_rules
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.api.yaml.documents import Document
from mpi_trainer.api.yaml.loaded import LoadedObject, beyond, located


def train_job(data: Mapping[str, Any]) -> LoadedObject:
    decoded = decode(TrainJob, data)
    value = trainjob_with_defaults(decoded.value)
    errors = (*decoded.errors, *beyond(decoded, train_job_rules.errors(value)))
    return LoadedObject(value, errors, decoded.warnings)


def runtime(data: Mapping[str, Any]) -> LoadedObject:
    decoded = decode(Runtime, data)
    value = runtime_with_defaults(decoded.value)
    errors = (*decoded.errors, *beyond(decoded, runtime_rules.errors(value)))
    suspicions = () if errors else runtime_rules.warnings(value)
    return LoadedObject(value, errors, (*decoded.warnings, *suspicions))


def fitted(
    read: Sequence[LoadedObject], parsed: Sequence[Document], runtimes: Iterable[Runtime]
) -> list[LoadedObject]:
    """Sound TrainJobs judged with their runtimes, where those were read too or are given."""
    known = (*(f.value for f in read if isinstance(f.value, Runtime) and not f.errors), *runtimes)
    return [_judged(found, document, known) for found, document in zip(read, parsed, strict=True)]


def apart(values: Sequence[object]) -> tuple[tuple[TrainJob, ...], tuple[Runtime, ...]]:
    """The TrainJobs and the runtimes among them."""
    return (
        tuple(value for value in values if isinstance(value, TrainJob)),
        tuple(value for value in values if isinstance(value, Runtime)),
    )


def _judged(found: LoadedObject, document: Document, known: Iterable[Runtime]) -> LoadedObject:
    job = found.value
    if found.errors or not isinstance(job, TrainJob):
        return found
    runtime = next((one for one in known if serves(one, job)), None)
    if runtime is None:
        return found
    errors = located(document, compatibility.errors(job, runtime))
    told = () if errors else located(document, compatibility.warnings(job, runtime))
    return LoadedObject(job, errors, (*found.warnings, *told), found.named_at)
