"""Attempts (CTL-11): any failure of the launcher or of a worker ends the attempt.

The next one starts within one budget, after a rest: with a fresh launcher, failed workers
replaced, and healthy workers kept but freed of leftover ranks. The failure is recorded before
anything is stopped, so a crash in between neither loses nor doubles it. `retry_at` is set exactly
while the job is between two attempts; a failure *of the current attempt* in the record means that
the job is over, whether or not its status says so yet.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds import failure_policy, pod_status
from mpi_trainer.api.kinds.annotations import POD_FAILURE_POLICY
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.decide import cause_text, permanent_failures, reasons
from mpi_trainer.decide.mpijob import backoff, elastic, takeover
from mpi_trainer.decide.observed import Failure, Observed, ObservedPod, Record
from mpi_trainer.layout.hosts import launcher_name, worker_name

replace = msgspec.structs.replace

# The record must stay small enough to be stored, however large the budget is.
TOLD_IN_FULL = 8


def failure(job: MPIJob, observed: Observed) -> Failure | None:
    """Why the running attempt is over, if it is: workers first, they are the likelier cause."""
    if observed.record.retry_at is not None:
        return None
    return _no_image(observed) or _worker_failure(job, observed) or _launcher_failure(job, observed)


def _no_image(observed: Observed) -> Failure | None:
    pod = next(
        (p for p in observed.pods if not p.terminating and permanent_failures.has_invalid_image(p)),
        None,
    )
    if pod is None:
        return None
    attempt, text = observed.record.attempt, permanent_failures.invalid_image(pod)
    return Failure(attempt, reasons.IMAGE_INVALID, text, pod.name)


def _worker_failure(job: MPIJob, observed: Observed) -> Failure | None:
    launcher = observed.launcher()
    launched = launcher is not None and launcher.phase != pod_status.PENDING
    needed = elastic.workers_needed(job, observed)
    for pod in sorted(observed.workers, key=lambda p: p.index):
        if pod.index >= job.workers:
            continue
        if pod.terminating:
            if launched and pod.index < needed:
                # mpirun may never notice that ranks are gone, so it is not asked.
                how = f"Worker {pod.name} was deleted while the launcher ran"
                return _taken(observed, pod, how, reasons.WORKER_FAILED)
            continue
        if pod.phase == pod_status.FAILED:
            evicted = pod.disrupted or (
                pod.end is not None and pod.end.reason == pod_status.EVICTED
            )
            reason = reasons.EVICTED if evicted else permanent_failures.reason(pod, observed)
            reason = reason or reasons.WORKER_FAILED
            return Failure(
                observed.record.attempt, reason, cause_text.pod_end("Worker", pod), pod.name
            )
        early = not launched and not observed.every_pod_works
        if pod.phase == pod_status.SUCCEEDED and early:
            text = f"{cause_text.pod_end('Worker', pod)}, before the launcher ran"
            return Failure(observed.record.attempt, reasons.WORKER_FAILED, text, pod.name)
    return _vanished(job, observed) if launched else None


def _taken(observed: Observed, pod: ObservedPod, how: str, reason: str) -> Failure:
    """A pod is being removed, by a person or, which has a reason of its own, by the cluster."""
    detail = f": {pod.why[: cause_text.LONGEST_DETAIL]}" if pod.why else ""
    reason = reasons.EVICTED if pod.disrupted else reason
    return Failure(observed.record.attempt, reason, f"{how}{detail}", pod.name)


def _vanished(job: MPIJob, observed: Observed) -> Failure | None:
    """A worker that ran is gone without its end having been seen; a job that grew lost none."""
    launcher = observed.launcher()
    if launcher is None or not c.holds(job.status.conditions, c.RUNNING):
        return None
    made_for = takeover.workers_expected_by(job, launcher)
    index = next((i for i in takeover.missing_workers(job, observed) if i < made_for), None)
    if index is None:
        return None
    name = worker_name(job.name, index)
    text = f"Worker {name} was running and is gone; it was deleted, or its node was"
    return Failure(observed.record.attempt, reasons.WORKER_FAILED, text, name)


def _launcher_failure(job: MPIJob, observed: Observed) -> Failure | None:
    attempt, reason = observed.record.attempt, reasons.LAUNCHER_FAILED
    launcher = next((p for p in observed.launchers if p.attempt == attempt), None)
    if launcher is None:
        if not c.holds(job.status.conditions, c.RUNNING):
            return None
        name = launcher_name(job.name)
        text = f"Launcher {name} was running and is gone; it was deleted, or its node was"
    elif launcher.terminating:
        how = f"Launcher {launcher.name} was deleted while it ran"
        return _taken(observed, launcher, how, reason)
    elif launcher.phase == pod_status.FAILED:
        name = launcher.name
        if launcher.end is not None and launcher.end.reason in reasons.OF_AGENT:
            return Failure(
                attempt, launcher.end.reason, cause_text.agent_verdict(launcher.end), name
            )
        text = cause_text.pod_end("Launcher", launcher)
        text += cause_text.first_failed_rank(observed, text)
        if launcher.foreign:
            reason = _of_job(launcher)
        else:
            reason = permanent_failures.reason(launcher, observed) or reason
    else:
        return None
    return Failure(attempt, reason, text, name)


def _of_job(launcher: ObservedPod) -> str:
    """Why another controller's Job has failed, which has made all attempts of the job's budget."""
    late = launcher.end is not None and launcher.end.reason == reasons.DEADLINE
    return reasons.DEADLINE if late else reasons.BACKOFF_LIMIT


def with_failure(record: Record, failure: Failure, now: datetime) -> Record:
    """The record with this failure in it and the next attempt named, to be stored before acting."""
    failures = _kept(record, failure)
    return Record(
        attempt=record.attempt + 1,
        failures=failures,
        retry_at=now + backoff.delay(len(failures)),
    )


def without_failure(record: Record, now: datetime) -> Record:
    """The record with the next attempt named and nothing counted; it rests the longer the more
    attempts there were."""
    rest = backoff.delay(record.attempt)
    return Record(attempt=record.attempt + 1, failures=record.failures, retry_at=now + rest)


def policy_action(job: MPIJob, observed: Observed, failure: Failure) -> failure_policy.Action:
    """What the job's podFailurePolicy says of the pod that failed; a failure that would be the same
    again is not ignored."""
    if failure.reason in reasons.PERMANENT:
        return failure_policy.COUNT
    policy = failure_policy.read(job.metadata.annotations.get(POD_FAILURE_POLICY, ""))
    pod = next((p for p in observed.pods if p.name == failure.pod), None)
    if pod is None:
        return failure_policy.COUNT
    return policy.action(None if pod.end is None else pod.end.code, pod.disrupted)


def with_last_failure(record: Record, failure: Failure) -> Record:
    """The record of a job that this failure ends; closing it twice changes nothing."""
    if last_failure(record) is not None:
        return record
    return Record(attempt=record.attempt, failures=_kept(record, failure))


def last_failure(record: Record) -> Failure | None:
    """The failure that ended the job, where it is recorded but perhaps not in the status yet."""
    last = record.failures[-1] if record.failures else None
    return last if last is not None and last.attempt == record.attempt else None


def after_suspension(job: MPIJob, observed: Observed, now: datetime) -> Record:
    """The record of a suspended job: a launcher that was stopped has used its attempt up.

    It costs nothing of the budget, but what its ranks reported is not the next launcher's.
    """
    record = observed.record
    if record.retry_at is not None:
        return record
    launched = any(p.attempt == record.attempt for p in observed.launchers)
    if launched or c.holds(job.status.conditions, c.RUNNING):
        return Record(attempt=record.attempt + 1, failures=record.failures, retry_at=now)
    return record


def with_bounded_backoff(record: Record, now: datetime) -> Record:
    """The record with a rest of the due length at most, should the clock have gone back."""
    latest = now + backoff.delay(len(record.failures))
    if record.retry_at is None or record.retry_at <= latest:
        return record
    return replace(record, retry_at=latest)


def as_job_failure(job: MPIJob, record: Record, failure: Failure) -> Failure:
    """The failure as the job's own, once the budget is spent."""
    if backoff.limit(job) == 0 or failure.reason in reasons.FINAL:
        return failure
    text = f"{len(record.failures)} attempts failed; the last: {failure.message}"
    return replace(failure, reason=reasons.BACKOFF_LIMIT, message=text)


def unneeded_pods(job: MPIJob, observed: Observed) -> tuple[str, ...]:
    """Pods of no use: other attempts' launchers, ended workers, workers beyond `replicas`."""
    between = observed.record.retry_at is not None
    current, kept = observed.launcher(), elastic.workers_to_keep(job, observed)
    return tuple(
        p.name
        for p in observed.pods
        if not p.terminating
        and (
            p is not current
            if p.role == "launcher"
            else p.index >= kept or (between and (p.ended or p.foreign))
        )
    )


def _kept(record: Record, failure: Failure) -> tuple[Failure, ...]:
    failures = (*record.failures, failure)
    old = tuple(replace(f, message="") for f in failures[:-TOLD_IN_FULL])
    return old + failures[-TOLD_IN_FULL:]
