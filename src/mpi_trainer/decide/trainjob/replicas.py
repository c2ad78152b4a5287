"""Counts of a TrainJob's Jobs, which are JobSet's, and what they say of its pods (API-5)."""

from __future__ import annotations

from datetime import datetime

import msgspec

from mpi_trainer.api.effective.combine import LAUNCHER, NODE, TRAINER, Effective, ReplicatedJob
from mpi_trainer.api.kinds.runtime import MPI
from mpi_trainer.api.kinds.trainjob import ReplicatedJobStatus
from mpi_trainer.decide.observed import Observed
from mpi_trainer.decide.trainjob.observed import ObservedJobSet

replace = msgspec.structs.replace


def counts(
    before: tuple[ReplicatedJobStatus, ...], job_set: ObservedJobSet | None
) -> tuple[ReplicatedJobStatus, ...]:
    """The JobSet's own; where it is gone nothing is active any more."""
    if job_set is not None and job_set.jobs:
        return job_set.jobs
    return after_end(before)


def after_end(counts: tuple[ReplicatedJobStatus, ...]) -> tuple[ReplicatedJobStatus, ...]:
    return tuple(replace(one, active=0, ready=0, suspended=0) for one in counts)


def all_run(effective: Effective, job_set: ObservedJobSet) -> bool:
    """By JobSet's counts, in which a Job is ready once all its pods are, or have ended well."""
    up = {one.name: one.ready + one.succeeded for one in job_set.jobs}
    wanted = _working(effective)
    return bool(wanted) and all(up.get(one.name, 0) >= one.replicas for one in wanted)


def _working(effective: Effective) -> list[ReplicatedJob]:
    """Those whose pods train, or lead those that do."""
    roles = (LAUNCHER, NODE) if effective.policy == MPI else (TRAINER,)
    return [one for one in effective.jobs if one.role in roles and one.count]


def last_start(effective: Effective, pods: Observed) -> datetime | None:
    """When the last pod began, once all have, or a launcher has: when it has ended, the others may
    be gone."""
    starts = [p.started for p in pods.pods if p.started is not None]
    launcher = pods.launcher()
    led = launcher is not None and launcher.started is not None
    wanted = sum(one.count * one.replicas for one in _working(effective))
    return max(starts) if starts and (led or len(starts) >= wanted) else None
