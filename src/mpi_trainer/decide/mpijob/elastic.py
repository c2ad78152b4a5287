"""A job that grows or shrinks while it runs (C-14): upstream's elastic jobs.

Growing, the new workers come first, and the launcher's files name them when all run. Shrinking,
the files change first, and the workers go then. Ranks are moved by nobody but the program, which
asks `discover_hosts.sh`.
"""

from __future__ import annotations

from mpi_trainer.api.kinds import pod_status
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.decide.observed import Observed


def hosts_change_now(job: MPIJob, observed: Observed) -> bool:
    """Whether the files that name the hosts are to change now."""
    known = _known_workers(observed)
    if known is None or known == job.workers:
        return False
    up = {p.index for p in observed.workers if p.phase == pod_status.RUNNING and not p.terminating}
    return known > job.workers or all(index in up for index in range(job.workers))


def workers_to_keep(job: MPIJob, observed: Observed) -> int:
    """How many workers are kept: those that the launcher counts on, even if fewer are wanted."""
    return max(job.workers, _known_workers(observed) or 0)


def workers_needed(job: MPIJob, observed: Observed) -> int:
    """How many workers the attempt depends on: of those that are to come, none yet."""
    known = _known_workers(observed)
    return job.workers if known is None else min(job.workers, known)


def _known_workers(observed: Observed) -> int | None:
    """How many workers the files name; None where no launcher of ours reads them now."""
    launcher = observed.launcher()
    if (
        launcher is None
        or launcher.foreign
        or launcher.ended
        or observed.record.retry_at is not None
    ):
        return None
    return launcher.workers
