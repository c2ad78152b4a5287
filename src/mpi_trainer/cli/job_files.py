"""Job files: read from disk or standard input (`-`), put into a namespace, and checked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from mpi_trainer.api.errors import FieldError, InvalidJob
from mpi_trainer.api.kinds.mpijob import MPIJob, to_wire
from mpi_trainer.api.kinds.runtime import CLUSTER, Runtime, serves
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.spelling import nearest
from mpi_trainer.api.yaml import load
from mpi_trainer.local.errors import LocalError

LARGEST = 4 * 1024 * 1024
Object = dict[str, Any]


def read(path: str) -> load.JobFile:
    return load.jobs(text(path), "standard input" if path == "-" else path)


def objects(path: str, runtimes: Sequence[Runtime] = ()) -> load.JobFile:
    """TrainJobs and runtimes too; `runtimes` are known beside those of the file."""
    return load.objects(text(path), "standard input" if path == "-" else path, runtimes)


def text(path: str) -> str:
    """What the file holds, or standard input; LocalError where that is no text."""
    try:
        with sys.stdin.buffer if path == "-" else Path(path).open("rb") as file:
            data = file.read(LARGEST + 1)
    except IsADirectoryError as error:
        raise LocalError(f"{path} is a directory", "Give the path of a file in it.") from error
    except OSError as error:
        raise LocalError(
            f"cannot read {path}: {error.strerror}", "Check the path and its permissions."
        ) from error
    if len(data) > LARGEST:
        raise LocalError(
            f"{path} is larger than {LARGEST // 2**20} MiB, which no job file is",
            "Give the path of an MPIJob manifest.",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LocalError(
            f"{path} is not UTF-8 text (byte {error.start})",
            "Give the path of an MPIJob manifest, saved as UTF-8.",
        ) from error


def in_namespace(job: MPIJob, namespace: str) -> MPIJob:
    """The job in the namespace that it names, else in this one."""
    if job.namespace:
        return job
    meta = msgspec.structs.replace(job.metadata, namespace=namespace)
    return msgspec.structs.replace(job, metadata=meta)


def validated(job: MPIJob) -> tuple[MPIJob, tuple[FieldError, ...]]:
    """The job with defaults, and its warnings; raises InvalidJob with everything that is wrong."""
    found = load.job(to_wire(job))
    if found.errors or not isinstance(found.value, MPIJob):
        raise InvalidJob(found.errors, found.warnings)
    return found.value, found.warnings


def attachments(file: load.JobFile | None, namespace: str) -> list[Object]:
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


def runtime_for(job: TrainJob, file: load.JobFile, path: str | None) -> Runtime:
    """The runtime of a TrainJob of the file: what the user gave with --runtime, the file's own, or
    one that we ship."""
    from mpi_trainer.local.jobs import shipped_runtimes

    if path is not None:
        return _only_runtime(path)
    own = (one for one in file.runtimes if serves(one, job))
    ref = job.spec.runtime_ref
    found = next(own, None)
    if found is None and ref.kind in (None, CLUSTER):
        found = shipped_runtimes.runtime(ref.name)
    if found is None:
        known = shipped_runtimes.names()
        meant = nearest(ref.name, known)
        hint = f"Did you mean {meant}? " if meant else ""
        raise LocalError(
            f"there is no {ref.kind or CLUSTER} {ref.name} here",
            f"{hint}Give it with `--runtime FILE`, put it into the job's file, or use one of "
            f"{', '.join(known)}.",
        )
    return found


def _only_runtime(path: str) -> Runtime:
    found = objects(path).runtimes
    if len(found) != 1:
        raise LocalError(
            f"{path} holds {len(found)} runtimes, and a job has one",
            "Give a file with one TrainingRuntime or ClusterTrainingRuntime.",
        )
    return found[0]
