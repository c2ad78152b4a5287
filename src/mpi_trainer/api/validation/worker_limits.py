"""How many workers, or nodes, one job may have.

Every one costs memory wherever a job is read: without a bound one job could stop them all. An
administrator may set a lower limit. Danger: it holds for new jobs and for those that grow; one that
was admitted before must go on.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterator
from typing import Final

import msgspec

from mpi_trainer.api.errors import INVALID, SUSPICIOUS, FieldError, Path
from mpi_trainer.api.kinds.mpijob import WORKER, MPIJob
from mpi_trainer.api.kinds.trainjob import TrainJob

MOST_WORKERS: Final = 10_000
WARNED_ABOVE: Final = 64

_WORKERS: Path = ("spec", "mpiReplicaSpecs", WORKER, "replicas")
_NODES: Path = ("spec", "trainer", "numNodes")
_RUNTIME: Path = ("spec", "runtimeRef", "name")


class WorkerLimits(msgspec.Struct, frozen=True):
    """More than `warned` is admitted with a warning (0: without), more than `most` is refused."""

    warned: int = WARNED_ABOVE
    most: int = MOST_WORKERS


DEFAULT: Final = WorkerLimits()


def most_from_flag(text: str) -> int:
    """For the command lines of controller and webhook."""
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:9]) <= MOST_WORKERS:
        raise ArgumentTypeError(f"{text!r} is not a number from 1 to {MOST_WORKERS}")
    return int(text)


def mpijob_errors(job: MPIJob, limits: WorkerLimits) -> Iterator[FieldError]:
    if job.workers > limits.most:
        rule = f"must be at most {limits.most}, the limit of this cluster"
        yield FieldError(_WORKERS, INVALID, job.workers, rule, "use fewer, larger workers")


def mpijob_warnings(job: MPIJob, limits: WorkerLimits = DEFAULT) -> Iterator[FieldError]:
    yield from _many(_WORKERS, job.workers, "workers", limits)


def trainjob_errors(job: TrainJob, pods: int, limits: WorkerLimits) -> Iterator[FieldError]:
    """`pods`: as many as the job has together with its runtime."""
    if pods > limits.most:
        given = job.trainer.num_nodes
        rule = f"makes {pods} pods, and a job has at most {limits.most}"
        path = _RUNTIME if given is None else _NODES
        yield FieldError(path, INVALID, given or job.spec.runtime_ref.name, rule, "use fewer nodes")


def trainjob_warnings(job: TrainJob, limits: WorkerLimits = DEFAULT) -> Iterator[FieldError]:
    yield from _many(_NODES, job.trainer.num_nodes or 0, "nodes", limits)


def _many(path: Path, count: int, what: str, limits: WorkerLimits) -> Iterator[FieldError]:
    if 0 < limits.warned < count:
        rule = f"more than {limits.warned} {what} are many: the start takes long, and one failure "
        rule += "ends the attempt of all"
        yield FieldError(path, SUSPICIOUS, count, rule, f"use fewer, larger {what}, if you can")
