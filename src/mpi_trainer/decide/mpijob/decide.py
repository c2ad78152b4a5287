"""`decide`: from an MPIJob and what is observed of it to what to do next. Pure.

Read `decide` top to bottom: it is the life of a job. Every pass starts from nothing but its
arguments, so a lost, doubled or late event costs one pass and no more.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds import failure_policy, pod_status
from mpi_trainer.api.kinds.managers import MPI_OPERATOR
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.decide import deadline, permanent_failures, reasons, success
from mpi_trainer.decide.mpijob import (
    attempts,
    backoff,
    cleanup,
    elastic,
    lost_pods,
    replicas,
    takeover,
    waiting,
)
from mpi_trainer.decide.mpijob.decision import MPIJobDecision
from mpi_trainer.decide.mpijob.status import StatusBuilder, ended_at
from mpi_trainer.decide.observed import Failure, Observed, ObservedPod, Record
from mpi_trainer.layout.hosts import launcher_name

replace = msgspec.structs.replace

NOW = timedelta(0)


def decide(job: MPIJob, observed: Observed, now: datetime) -> MPIJobDecision:
    """The next step of a job that was validated and defaulted."""
    if not ours(job) or job.metadata.deletion_timestamp is not None:
        return MPIJobDecision(job.status, observed.record)
    if c.finished(job.status.conditions):
        return _finished(job, observed, now)
    builder = StatusBuilder(job, now, job.status).created()
    recorded = attempts.last_failure(observed.record)
    if recorded is not None:
        return _job_failed(builder, observed, recorded)
    hidden = success.hidden_failure(expected_ranks(job), observed)
    if hidden is None and success.is_claimed(expected_ranks(job), observed):
        warning = success.placement_warning(expected_ranks(job), observed)
        return _ended(builder.placement_warned(warning).succeeded(), observed, observed.record)
    if job.spec.run_policy.suspend:
        return _suspended(builder, observed)
    return _active(builder.resumed().started(), observed, hidden)


def _active(builder: StatusBuilder, observed: Observed, hidden: Failure | None) -> MPIJobDecision:
    over = _timeout(builder, observed)
    if over is not None:
        return _job_failed(builder, observed, over)
    failure = attempts.failure(builder.job, observed) or hidden
    if failure is not None:
        return _attempt_failed(builder, observed, failure)
    if observed.record.retry_at is not None:
        return _between_attempts(builder, observed, observed.record.retry_at)
    if takeover.needs_new_attempt(builder.job, observed):
        return _ended(builder, observed, takeover.next_attempt(observed.record, builder.now))
    return _run_attempt(builder, observed, observed.record)


def refused(
    job: MPIJob, record: Record, reason: str, message: str, now: datetime
) -> MPIJobDecision:
    """The end of a job that cannot be carried out at all, whatever is tried."""
    builder = StatusBuilder(job, now, job.status).created()
    return _job_failed(builder, Observed(record=record), Failure(record.attempt, reason, message))


def ours(job: MPIJob) -> bool:
    """Whether this controller is the one that the job asks for."""
    return job.spec.run_policy.managed_by in (None, "", MPI_OPERATOR)


def expected_ranks(job: MPIJob) -> success.ExpectedRanks:
    works = bool(job.spec.run_launcher_as_worker)
    return success.ExpectedRanks(launcher_name(job.name), job.workers, job.slots, works)


def _finished(job: MPIJob, observed: Observed, now: datetime) -> MPIJobDecision:
    ttl = job.spec.run_policy.ttl_seconds_after_finished
    left = deadline.remaining_seconds(ttl, ended_at(job.status), now)
    if left is not None and left <= NOW:
        return MPIJobDecision(job.status, observed.record, delete_job=True)
    status = job.status
    if status.last_reconcile_time is not None:
        # Else another controller has ended it, and what it wrote stays as it is.
        counted = replicas.after_end(status.replica_statuses, observed)
        status = replace(status, replica_statuses=counted)
    return _with_reconcile_time(
        StatusBuilder(job, now, status),
        MPIJobDecision(
            status, observed.record, stop=cleanup.pods_to_remove(job, observed), requeue_after=left
        ),
    )


def _suspended(builder: StatusBuilder, observed: Observed) -> MPIJobDecision:
    updated = builder.suspended()
    step = MPIJobDecision(
        updated.status,
        attempts.after_suspension(builder.job, observed, builder.now),
        needs_key=not observed.has_key,
        stop=tuple(p.name for p in observed.pods if not p.terminating),
        events=updated.events,
    )
    return _with_reconcile_time(updated, _with_counts(builder.job, step, observed))


def _timeout(builder: StatusBuilder, observed: Observed) -> Failure | None:
    job, started = builder.job, builder.status.start_time or builder.now
    attempt = observed.record.attempt
    left = deadline.remaining(job, started, builder.now)
    if left is not None and left <= NOW:
        return Failure(attempt, reasons.DEADLINE, deadline.message(job))
    left = waiting.time_left(job, builder.status, observed, builder.now)
    if left is not None and left <= NOW:
        return Failure(attempt, reasons.SCHEDULING_TIMEOUT, waiting.timeout_message(job, observed))
    return None


def _attempt_failed(builder: StatusBuilder, observed: Observed, failure: Failure) -> MPIJobDecision:
    """An attempt is over: recorded now, acted upon in the next pass."""
    job, limit = builder.job, backoff.limit(builder.job)
    action = attempts.policy_action(job, observed, failure)
    if action == failure_policy.IGNORE:
        return _ignored(builder, observed, failure)
    if action == failure_policy.FAIL_JOB:
        text = f"{failure.message.rstrip('.')}. By the job's podFailurePolicy it is not retried."
        failure = replace(failure, reason=reasons.FAILURE_POLICY, message=text)
    if failure.reason in reasons.PERMANENT:
        failure = permanent_failures.explained(failure, retries=limit > 0)
    updated = builder.attempt_failed(failure)
    if failure.reason in reasons.FINAL or backoff.exhausted(job, len(observed.record.failures) + 1):
        return _job_failed(builder if limit == 0 else updated, observed, failure)
    record = attempts.with_failure(observed.record, failure, builder.now)
    return _ended(updated.restarting(record, limit), observed, record)


def _ignored(builder: StatusBuilder, observed: Observed, failure: Failure) -> MPIJobDecision:
    """The next attempt follows, and nothing is counted."""
    text = f"{failure.message.rstrip('.')}. By the job's podFailurePolicy it is not counted."
    record = attempts.without_failure(observed.record, builder.now)
    updated = builder.attempt_failed(replace(failure, message=text))
    return _ended(updated.restarting(record, backoff.limit(builder.job)), observed, record)


def _job_failed(builder: StatusBuilder, observed: Observed, failure: Failure) -> MPIJobDecision:
    record = attempts.with_last_failure(observed.record, failure)
    return _ended(
        builder.failed(attempts.as_job_failure(builder.job, record, failure)), observed, record
    )


def _ended(builder: StatusBuilder, observed: Observed, record: Record) -> MPIJobDecision:
    """The last decision of an attempt or a job; removing pods is the next pass's business."""
    step = MPIJobDecision(builder.status, record, events=builder.events, requeue_after=NOW)
    return _with_reconcile_time(builder, _with_counts(builder.job, step, observed))


def _between_attempts(
    builder: StatusBuilder, observed: Observed, retry_at: datetime
) -> MPIJobDecision:
    """Wait and remove pods, until nothing is left of the last attempt but its healthy workers."""
    job, limit = builder.job, backoff.limit(builder.job)
    record = attempts.with_bounded_backoff(observed.record, builder.now)
    updated = builder.restarting(record, limit)
    left = (record.retry_at or retry_at) - builder.now
    if c.holds(job.status.conditions, c.RUNNING):
        # The status of this pass was lost once. Should it be lost again after the attempt has
        # begun, the old Running would read as a launcher that is gone.
        return _with_status(
            updated, observed, MPIJobDecision(updated.status, record, requeue_after=NOW)
        )
    if (
        left > NOW
        or attempts.unneeded_pods(job, observed)
        or lost_pods.awaited_deletions(job, observed)
    ):
        wait = left if left > NOW else None
        return _remove_pods(
            updated, observed, MPIJobDecision(updated.status, record, requeue_after=wait)
        )
    return _run_attempt(updated.retrying(record, limit), observed, replace(record, retry_at=None))


def _run_attempt(builder: StatusBuilder, observed: Observed, record: Record) -> MPIJobDecision:
    """Start what is missing: workers, then, when they are ready for it, the launcher."""
    job = builder.job
    if attempts.unneeded_pods(job, observed) or lost_pods.awaited_deletions(job, observed):
        return _remove_pods(builder, observed, MPIJobDecision(builder.status, record))
    stale = tuple(p.name for p in observed.workers if p.attempt < record.attempt)
    launcher = observed.launcher()
    # What ours would make, another controller's launcher could not use.
    led_by_another = launcher is not None and launcher.foreign
    absent = () if led_by_another else takeover.missing_workers(job, observed)
    step = MPIJobDecision(
        builder.status,
        record,
        needs_key=not observed.has_key,
        start_workers=absent,
        start_launcher=launcher is None and not stale and _may_launch(job, observed),
        free=stale,
        resize=elastic.hosts_change_now(job, observed),
    )
    return _with_status(_with_running(builder, observed), observed, step)


def _remove_pods(
    builder: StatusBuilder, observed: Observed, step: MPIJobDecision
) -> MPIJobDecision:
    """Stop pods of no use, and in the end healthy ones that wait in vain for a lost one."""
    job = builder.job
    held = lost_pods.workers_to_release(job, observed, builder.now)
    if held:
        builder = builder.workers_released(lost_pods.message(job, observed, len(held)))
    stop = tuple(dict.fromkeys((*attempts.unneeded_pods(job, observed), *held)))
    left = None if held else lost_pods.remaining(job, observed, builder.now)
    waits = (w for w in (step.requeue_after, left) if w is not None and w > NOW)
    return _with_status(
        builder, observed, replace(step, stop=stop, requeue_after=min(waits, default=None))
    )


def _may_launch(job: MPIJob, observed: Observed) -> bool:
    if not waiting.launches_late(job):
        return True
    return sum(1 for p in observed.workers if p.ready) == job.workers


def _with_running(builder: StatusBuilder, observed: Observed) -> StatusBuilder:
    launcher = observed.launcher()
    up = sum(1 for p in observed.workers if _works(p, observed))
    if launcher is None or not _works(launcher, observed) or up < builder.job.workers:
        marked = c.holds(builder.status.conditions, c.RUNNING) and not observed.suspicion
        return builder.suspected("") if marked else builder
    return builder.running().suspected(observed.suspicion)


def _works(pod: ObservedPod, observed: Observed) -> bool:
    """Where every pod does a part of the work, one that has done its part need not run."""
    done = observed.every_pod_works and pod.phase == pod_status.SUCCEEDED
    return done or pod.phase == pod_status.RUNNING


def _with_status(
    builder: StatusBuilder, observed: Observed, step: MPIJobDecision
) -> MPIJobDecision:
    """The step with the status, its events, and the next moment that time alone decides."""
    after = replace(observed, record=step.record)
    wait = waiting.next_message_in(builder.job, builder.status, after, builder.now)
    if wait is not None and wait <= NOW:
        builder = builder.waiting(waiting.message(builder.job, builder.status, after, builder.now))
        wait = waiting.EVERY
    waits = (
        step.requeue_after,
        wait,
        deadline.remaining(builder.job, builder.status.start_time or builder.now, builder.now),
        waiting.time_left(builder.job, builder.status, after, builder.now),
    )
    soonest = min((w for w in waits if w is not None), default=None)
    updated = replace(step, status=builder.status, events=builder.events, requeue_after=soonest)
    return _with_reconcile_time(builder, _with_counts(builder.job, updated, observed))


def _with_counts(job: MPIJob, step: MPIJobDecision, observed: Observed) -> MPIJobDecision:
    counted = replicas.counts(job.name, observed, step.record)
    return replace(step, status=replace(step.status, replica_statuses=counted))


def _with_reconcile_time(builder: StatusBuilder, step: MPIJobDecision) -> MPIJobDecision:
    """Only where the status says something new: a time alone would be a write in every pass."""
    if step.status == builder.job.status:
        return step
    return replace(step, status=replace(step.status, last_reconcile_time=builder.now))
