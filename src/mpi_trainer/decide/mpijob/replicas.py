"""Counts of launcher and workers by what became of them (API-5)."""

from __future__ import annotations

from collections.abc import Mapping

from mpi_trainer.api.kinds import pod_status
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, ReplicaStatus
from mpi_trainer.decide.observed import Observed, ObservedPod, Record
from mpi_trainer.layout.hosts import launcher_name


def counts(job: str, observed: Observed, record: Record) -> Mapping[str, ReplicaStatus]:
    """While a job lives. A launcher's failures are remembered; its failed pods may be gone.

    A launcher that returned 0 while its ranks failed has not succeeded.
    """
    failures = sum(1 for f in record.failures if f.pod == launcher_name(job))
    failed_attempts = {f.attempt for f in record.failures}
    good = tuple(p for p in observed.launchers if p.attempt not in failed_attempts)
    return {
        LAUNCHER: ReplicaStatus(
            active=_in_phase(observed.launchers, pod_status.RUNNING),
            succeeded=min(_in_phase(good, pod_status.SUCCEEDED), 1),
            failed=failures,
        ),
        WORKER: ReplicaStatus(
            active=_in_phase(observed.workers, pod_status.RUNNING),
            succeeded=_in_phase(observed.workers, pod_status.SUCCEEDED),
            failed=_in_phase(observed.workers, pod_status.FAILED),
        ),
    }


def after_end(
    before: Mapping[str, ReplicaStatus], observed: Observed
) -> Mapping[str, ReplicaStatus]:
    """After the end: how it ended stays true when the pods are cleaned up; only `active` moves."""
    active = {
        LAUNCHER: _in_phase(observed.launchers, pod_status.RUNNING),
        WORKER: _in_phase(observed.workers, pod_status.RUNNING),
    }
    return {
        role: ReplicaStatus(active=active.get(role, 0), succeeded=old.succeeded, failed=old.failed)
        for role, old in before.items()
    }


def _in_phase(pods: tuple[ObservedPod, ...], phase: str) -> int:
    return sum(1 for p in pods if p.phase == phase and not p.terminating)
