"""Jobs, pods and ranks in a few words, for tests of what is decided about them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.mpijob import (
    LAUNCHER,
    WORKER,
    MPIJob,
    MPIJobSpec,
    MPIJobStatus,
    ReplicaSpec,
    RunPolicy,
    SchedulingPolicy,
)
from mpi_trainer.decide.mpijob.decide import decide
from mpi_trainer.decide.mpijob.decision import MPIJobDecision
from mpi_trainer.decide.observed import End, Failure, Observed, ObservedPod, ObservedRank, Record

replace = msgspec.structs.replace
T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def make_job(workers: int = 2, *, status: MPIJobStatus | None = None, **fields: Any) -> MPIJob:
    """A job; run policy fields and `launcher_creation_policy` by name, `timeout` for scheduling."""
    spec = {
        k: fields.pop(k)
        for k in ("launcher_creation_policy", "run_launcher_as_worker")
        if k in fields
    }
    timeout = fields.pop("timeout", None)
    gang = SchedulingPolicy(schedule_timeout_seconds=timeout) if timeout is not None else None
    return MPIJob(
        metadata=ObjectMeta(name="pi", namespace="lab"),
        spec=MPIJobSpec(
            run_policy=RunPolicy(scheduling_policy=gang, **fields),
            mpi_replica_specs={
                LAUNCHER: ReplicaSpec(replicas=1),
                WORKER: ReplicaSpec(replicas=workers),
            },
            **spec,
        ),
        status=status or MPIJobStatus(),
    )


def with_policy(job: MPIJob, **fields: Any) -> MPIJob:
    policy = replace(job.spec.run_policy, **fields)
    return replace(job, spec=replace(job.spec, run_policy=policy))


def with_workers(job: MPIJob, workers: int) -> MPIJob:
    specs = {LAUNCHER: ReplicaSpec(replicas=1), WORKER: ReplicaSpec(replicas=workers)}
    return replace(job, spec=replace(job.spec, mpi_replica_specs=specs))


def worker(index: int = 0, phase: Any = "Running", **fields: Any) -> ObservedPod:
    up = phase == "Running"
    given = {"ready": up, "uid": f"w{index}", "index": index, **fields}
    return ObservedPod(name=f"pi-worker-{index}", role="worker", phase=phase, **given)


def launcher(phase: Any = "Running", **fields: Any) -> ObservedPod:
    return ObservedPod(
        **{"name": "pi-launcher", "role": "launcher", "uid": "l", **fields, "phase": phase}
    )


def rank(
    number: int = 0, *, code: int | None = 0, pod: str = "pi-worker-0", **more: Any
) -> ObservedRank:
    end = None if code is None else End(code=code)
    return ObservedRank(rank=number, size=2, pod=pod, end=end, **more)


def observe(*pods: ObservedPod, record: Record | None = None, **fields: Any) -> Observed:
    return Observed(pods=pods, record=record or Record(), **{"has_key": True, **fields})


def stored(job: MPIJob, decision: MPIJobDecision) -> MPIJob:
    return replace(job, status=decision.status)


def running_job(**fields: Any) -> tuple[MPIJob, Observed]:
    """Two workers and a launcher at work since T0, and the status that says so."""
    job, observed = make_job(**fields), observe(launcher(), worker(0), worker(1))
    return stored(job, decide(job, observed, T0)), observed


def failed_once(**fields: Any) -> tuple[MPIJob, Record]:
    """A job between attempts: the launcher of its first one failed at T0."""
    job, _ = running_job(**fields)
    observed = observe(launcher("Failed", end=End(code=1)), worker(0), worker(1))
    first = decide(job, observed, T0)
    return stored(job, first), first.record


def record_of(*failures: Failure, attempt: int, **fields: Any) -> Record:
    return Record(attempt=attempt, failures=failures, **fields)


def truth(status: MPIJobStatus) -> dict[str, str]:
    """Condition type to status, to compare with a literal."""
    return {x.type: x.status for x in status.conditions}


def condition(status: MPIJobStatus, kind: str) -> c.Condition:
    found = c.find(status.conditions, kind)
    assert found is not None, f"no condition {kind}"
    return found


def event_reasons(decision: MPIJobDecision) -> list[str]:
    return [e.reason for e in decision.events]
