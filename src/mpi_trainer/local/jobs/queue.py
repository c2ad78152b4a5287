"""Admission of local jobs, which share the machine's cores and memory: first come, first served.

There is no queue process. Each supervisor asks for itself, under one lock, by reading the states of
the others; a dead one counts for nothing. A job that is larger than the machine runs
alone rather than never.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

import msgspec

from mpi_trainer.api import quantities
from mpi_trainer.api.kinds.mpijob import MPIJob, ReplicaSpec

RANK_MEMORY = 256 << 20
USABLE = 0.9


class ResourceNeed(msgspec.Struct, frozen=True):
    cpus: float
    memory: int


class QueuedJob(Protocol):
    """A job that has been admitted, or waits."""

    @property
    def needs_cpus(self) -> float: ...

    @property
    def needs_memory(self) -> int: ...

    @property
    def admitted(self) -> bool: ...

    @property
    def queued(self) -> float | None: ...


def resource_need(job: MPIJob) -> ResourceNeed:
    """What its pods ask for: requests, else limits, else a core and a bit for each rank in them.

    A launcher without ranks only waits; but a job without any needs one core to run at all.
    """
    beside = job.slots if job.spec.run_launcher_as_worker else 0
    cpus = (_asked(job.worker, "cpu") or job.slots) * job.workers
    cpus += _asked(job.launcher, "cpu") or beside
    memory = (_asked(job.worker, "memory") or job.slots * RANK_MEMORY) * job.workers
    memory += _asked(job.launcher, "memory") or beside * RANK_MEMORY
    return ResourceNeed(cpus or 1.0, int(memory) or RANK_MEMORY)


def capacity() -> ResourceNeed:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return ResourceNeed(float(os.cpu_count() or 1), int(memory * USABLE))


def refusal(mine: QueuedJob, others: Sequence[QueuedJob], machine: ResourceNeed) -> str:
    """Why it is not the turn of `mine`; empty where it is."""
    before = [o for o in others if not o.admitted and _order(o) < _order(mine)]
    if before:
        return f"{len(before)} jobs that were there first"
    running = [o for o in others if o.admitted]
    cpus = machine.cpus - sum(o.needs_cpus for o in running)
    memory = machine.memory - sum(o.needs_memory for o in running)
    if not running or (mine.needs_cpus <= cpus and mine.needs_memory <= memory):
        return ""
    return (
        f"{mine.needs_cpus:g} cores and {mine.needs_memory >> 20} MiB; "
        f"{max(cpus, 0.0):g} cores and {max(memory, 0) >> 20} MiB are free, "
        f"{len(running)} jobs run"
    )


def _order(claim: QueuedJob) -> float:
    return float("inf") if claim.queued is None else claim.queued


def _asked(replica: ReplicaSpec, resource: str) -> float:
    containers = replica.template.view.spec.containers[:1]
    for container in containers:
        given = container.resources.requests.get(resource, container.resources.limits.get(resource))
        if given is not None:
            return float(quantities.parse(given))
    return 0.0
