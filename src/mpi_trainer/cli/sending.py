"""The jobs of a file on their way to a cluster: placed, checked, and what is printed of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from mpi_trainer.api.errors import FieldError, InvalidJob
from mpi_trainer.api.kinds.mpijob import MPIJob, to_wire
from mpi_trainer.api.yaml import load
from mpi_trainer.cli import program
from mpi_trainer.cli.output import words

if TYPE_CHECKING:
    from mpi_trainer.sdk.backends.backend import JobView

Object = dict[str, Any]


def placed(job: MPIJob, namespace: str) -> MPIJob:
    """The job in the namespace that it names, else in this one."""
    if job.namespace:
        return job
    meta = msgspec.structs.replace(job.metadata, namespace=namespace)
    return msgspec.structs.replace(job, metadata=meta)


def checked(job: MPIJob) -> tuple[MPIJob, tuple[FieldError, ...]]:
    """The job with defaults, and its warnings; raises InvalidJob with everything that is wrong."""
    found = load.job(to_wire(job))
    if found.errors or not isinstance(found.value, MPIJob):
        raise InvalidJob(found.errors, found.warnings)
    return found.value, found.warnings


def companions(file: load.JobFile | None, namespace: str) -> list[Object]:
    """The ConfigMaps and Secrets of a file, as a cluster takes them: where its jobs go."""
    if file is None:
        return []
    metas = [job.metadata for job in file.jobs] + [job.metadata for job in file.train_jobs]
    wheres = {meta.namespace or namespace for meta in metas}
    if len(wheres) == 1:
        (namespace,) = wheres
    maps = [("ConfigMap", msgspec.to_builtins(item)) for item in file.config_maps]
    secrets = [("Secret", msgspec.to_builtins(item)) for item in file.secrets]
    made = [{"apiVersion": "v1", "kind": kind, **body} for kind, body in (*maps, *secrets)]
    for each in made:
        each["metadata"].setdefault("namespace", namespace)
    return made


def receipt(job: JobView) -> str:
    """AC-1: the job's id and when it was submitted."""
    created = words.moment(job.times.created)
    return f"{words.full_name(job.name)} created at {created}, id {job.uid}"


def next_step(job: JobView) -> str:
    return f"follow it with `{program.call('logs --follow', job.name, job.namespace)}`"
