"""Names and labels (V1 and area 10): every child of the job must get a legal name too."""

from __future__ import annotations

from mpi_trainer.api import names
from mpi_trainer.api.errors import INVALID, TOO_LONG, FieldError
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.validation import rules

_GENERATED = "xxxxx"


def errors(job: MPIJob) -> rules.Errors:
    meta = job.metadata
    if meta.name:
        yield from _name(job, "name", meta.name, meta.name)
    elif meta.generate_name:
        shown = meta.generate_name
        yield from _name(job, "generateName", shown, shown + _GENERATED)
    else:
        path = ("metadata", "name")
        yield rules.required(path, "a job must have a name", "add for example `name: train`")
    if meta.namespace:
        fault = names.dns1123_label(meta.namespace)
        yield from rules.named(("metadata", "namespace"), meta.namespace, fault)
    yield from rules.label_map(("metadata", "labels"), meta.labels)
    yield from rules.annotation_map(("metadata", "annotations"), meta.annotations)


def longest_suffix(workers: int) -> str:
    """What the longest child name adds to the job's: a worker's, or the launcher's."""
    return f"-worker-{max(workers, 1) - 1}"


def _name(job: MPIJob, field: str, shown: str, name: str) -> rules.Errors:
    path = ("metadata", field)
    suffix = longest_suffix(job.workers)
    room = names.LABEL_LENGTH - len(suffix)
    if len(name) > room:
        size = len(name) + len(suffix)
        rule = f"its pod `…{suffix}` would need {size} characters, and {names.LABEL_LENGTH} are"
        fits = room - (len(name) - len(shown))
        remedy = f"use at most {fits} characters"
        yield FieldError(path, TOO_LONG, shown, f"{rule} allowed", remedy)
    fault = names.dns1035_label(name[: names.LABEL_LENGTH])
    if fault is not None and len(name) <= names.LABEL_LENGTH:
        yield FieldError(path, INVALID, shown, fault.rule, fault.remedy)
