"""`decide`: from a job and what is seen of it to what to do next. Pure.

Read `decide` top to bottom: it is the life of a job. Every look starts from nothing but its
arguments, so a lost, doubled or late event costs one look and no more.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.managers import MPI_OPERATOR
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.decide import (
    backoff,
    deadline,
    permanent_failures,
    reasons,
    scheduling,
    success,
    ttl,
)
from mpi_trainer.decide.mpijob import (
    attempts,
    cleanup,
    elastic,
    lost_pods,
    replicas,
    takeover,
    waiting,
)
from mpi_trainer.decide.mpijob.decision import MPIJobDecision
from mpi_trainer.decide.mpijob.status import StatusBuilder
from mpi_trainer.decide.observed import Failure, Observed, Record

replace = msgspec.structs.replace

NOW = timedelta(0)


def decide(job: MPIJob, seen: Observed, now: datetime) -> MPIJobDecision:
    """The next step of a job that was validated and defaulted."""
    if not ours(job) or job.metadata.deletion_timestamp is not None:
        return MPIJobDecision(job.status, seen.record)
    if c.finished(job.status.conditions):
        return _finished(job, seen, now)
    story = StatusBuilder(job, now, job.status).created()
    lost = attempts.last_failure(seen.record)
    if lost is not None:
        return _lost(story, seen, lost)
    objection = success.hidden_failure(_cast(job), seen)
    if objection is None and success.launcher_succeeded(seen):
        odd = success.placement_warning(_cast(job), seen)
        return _ended(story.surprised(odd).succeeded(), seen, seen.record)
    if job.spec.run_policy.suspend:
        return _suspended(story, seen)
    return _active(story.resumed().started(), seen, objection)


def _active(story: StatusBuilder, seen: Observed, objection: Failure | None) -> MPIJobDecision:
    over = _time_is_up(story, seen)
    if over is not None:
        return _lost(story, seen, over)
    failure = attempts.failure(story.job, seen) or objection
    if failure is not None:
        return _failed(story, seen, failure)
    if seen.record.retry_at is not None:
        return _between(story, seen, seen.record.retry_at)
    if takeover.needs_new_attempt(story.job, seen):
        return _ended(story, seen, takeover.next_attempt(seen.record, story.now))
    return _under_way(story, seen, seen.record)


def refused(
    job: MPIJob, record: Record, reason: str, message: str, now: datetime
) -> MPIJobDecision:
    """The end of a job that cannot be carried out at all, whatever is tried."""
    story = StatusBuilder(job, now, job.status).created()
    return _lost(story, Observed(record=record), Failure(record.attempt, reason, message))


def ours(job: MPIJob) -> bool:
    """Whether this controller is the one that the job asks for."""
    return job.spec.run_policy.managed_by in (None, "", MPI_OPERATOR)


def _cast(job: MPIJob) -> success.ExpectedRanks:
    works = bool(job.spec.run_launcher_as_worker)
    return success.ExpectedRanks(f"{job.name}-launcher", job.workers, job.slots, works)


def _finished(job: MPIJob, seen: Observed, now: datetime) -> MPIJobDecision:
    left = ttl.remaining(job, now)
    if left is not None and left <= NOW:
        return MPIJobDecision(job.status, seen.record, delete_job=True)
    status = job.status
    if status.last_reconcile_time is not None:
        # Else another controller has ended it, and what it wrote stays as it is.
        counted = replicas.after_end(status.replica_statuses, seen)
        status = replace(status, replica_statuses=counted)
    return _closed(
        StatusBuilder(job, now, status),
        MPIJobDecision(
            status, seen.record, stop=cleanup.pods_to_remove(job, seen), requeue_after=left
        ),
    )


def _suspended(story: StatusBuilder, seen: Observed) -> MPIJobDecision:
    told = story.suspended()
    step = MPIJobDecision(
        told.status,
        attempts.after_suspension(story.job, seen, story.now),
        needs_key=not seen.has_key,
        stop=tuple(p.name for p in seen.pods if not p.terminating),
        events=told.events,
    )
    return _closed(told, _with_counts(step, seen))


def _time_is_up(story: StatusBuilder, seen: Observed) -> Failure | None:
    job, started = story.job, story.status.start_time or story.now
    attempt = seen.record.attempt
    left = deadline.remaining(job, started, story.now)
    if left is not None and left <= NOW:
        return Failure(attempt, reasons.DEADLINE, deadline.message(job))
    left = scheduling.remaining(job, story.status, seen, story.now)
    if left is not None and left <= NOW:
        return Failure(attempt, reasons.SCHEDULING_TIMEOUT, scheduling.message(job, seen))
    return None


def _failed(story: StatusBuilder, seen: Observed, failure: Failure) -> MPIJobDecision:
    """An attempt is over: recorded now, acted upon at the next look."""
    job, limit = story.job, backoff.limit(story.job)
    if failure.reason in reasons.PERMANENT:
        failure = permanent_failures.explained(failure, retries=limit > 0)
    told = story.blaming(failure)
    if failure.reason in reasons.FINAL or backoff.exhausted(job, len(seen.record.failures) + 1):
        return _lost(story if limit == 0 else told, seen, failure)
    record = attempts.with_failure(seen.record, failure, story.now)
    return _ended(told.restarting(record, limit), seen, record)


def _lost(story: StatusBuilder, seen: Observed, failure: Failure) -> MPIJobDecision:
    record = attempts.with_last_failure(seen.record, failure)
    return _ended(story.failed(attempts.as_job_failure(story.job, record, failure)), seen, record)


def _ended(story: StatusBuilder, seen: Observed, record: Record) -> MPIJobDecision:
    """The last decision of an attempt or a job; clearing away is the next look's business."""
    step = MPIJobDecision(story.status, record, events=story.events, requeue_after=NOW)
    return _closed(story, _with_counts(step, seen))


def _between(story: StatusBuilder, seen: Observed, retry_at: datetime) -> MPIJobDecision:
    """Rest and clear away, until nothing is left of the last attempt but its healthy workers."""
    job, limit = story.job, backoff.limit(story.job)
    record = attempts.with_bounded_backoff(seen.record, story.now)
    told = story.restarting(record, limit)
    left = (record.retry_at or retry_at) - story.now
    if c.holds(job.status.conditions, c.RUNNING):
        # The status of this look was lost once. Should it be lost again after the attempt has
        # begun, the old Running would read as a launcher that is gone.
        return _onward(told, seen, MPIJobDecision(told.status, record, requeue_after=NOW))
    if left > NOW or attempts.unneeded_pods(job, seen) or lost_pods.awaited_deletions(job, seen):
        wait = left if left > NOW else None
        return _clearing(told, seen, MPIJobDecision(told.status, record, requeue_after=wait))
    return _under_way(told.retrying(record, limit), seen, replace(record, retry_at=None))


def _under_way(story: StatusBuilder, seen: Observed, record: Record) -> MPIJobDecision:
    """Start what is missing: workers, then, when they are ready for it, the launcher."""
    job = story.job
    if attempts.unneeded_pods(job, seen) or lost_pods.awaited_deletions(job, seen):
        return _clearing(story, seen, MPIJobDecision(story.status, record))
    stale = tuple(p.name for p in seen.workers if p.attempt < record.attempt)
    launcher = seen.launcher()
    # What ours would make, another controller's launcher could not use.
    led_by_another = launcher is not None and launcher.foreign
    absent = () if led_by_another else takeover.missing_workers(job, seen)
    step = MPIJobDecision(
        story.status,
        record,
        needs_key=not seen.has_key,
        start_workers=absent,
        start_launcher=launcher is None and not stale and _may_launch(job, seen),
        free=stale,
        resize=elastic.hosts_change_now(job, seen),
    )
    return _onward(_alive(story, seen), seen, step)


def _clearing(story: StatusBuilder, seen: Observed, step: MPIJobDecision) -> MPIJobDecision:
    """Stop what is of no use; what holds resources in vain for long, too."""
    job = story.job
    held = lost_pods.workers_to_release(job, seen, story.now)
    if held:
        story = story.releasing(lost_pods.message(job, seen, len(held)))
    stop = tuple(dict.fromkeys((*attempts.unneeded_pods(job, seen), *held)))
    left = None if held else lost_pods.remaining(job, seen, story.now)
    waits = (w for w in (step.requeue_after, left) if w is not None and w > NOW)
    return _onward(story, seen, replace(step, stop=stop, requeue_after=min(waits, default=None)))


def _may_launch(job: MPIJob, seen: Observed) -> bool:
    if not scheduling.launches_late(job):
        return True
    return sum(1 for p in seen.workers if p.ready) == job.workers


def _alive(story: StatusBuilder, seen: Observed) -> StatusBuilder:
    launcher = seen.launcher()
    up = sum(1 for p in seen.workers if p.phase == "Running")
    if launcher is None or launcher.phase != "Running" or up < story.job.workers:
        return story
    return story.running()


def _onward(story: StatusBuilder, seen: Observed, step: MPIJobDecision) -> MPIJobDecision:
    """The step with the story's words, the counts, and the next moment that time alone decides."""
    after = replace(seen, record=step.record)
    wait = waiting.remaining(story.job, story.status, after, story.now)
    if wait is not None and wait <= NOW:
        story = story.waiting(waiting.message(story.job, story.status, after, story.now))
        wait = waiting.EVERY
    waits = (
        step.requeue_after,
        wait,
        deadline.remaining(story.job, story.status.start_time or story.now, story.now),
        scheduling.remaining(story.job, story.status, after, story.now),
    )
    soonest = min((w for w in waits if w is not None), default=None)
    told = replace(step, status=story.status, events=story.events, requeue_after=soonest)
    return _closed(story, _with_counts(told, seen))


def _with_counts(step: MPIJobDecision, seen: Observed) -> MPIJobDecision:
    counted = replicas.counts(seen, step.record)
    return replace(step, status=replace(step.status, replica_statuses=counted))


def _closed(story: StatusBuilder, step: MPIJobDecision) -> MPIJobDecision:
    """Stamps the look, but only where the status says something new: a stamp alone is no news.

    Were it stamped for every act, an act that takes a while would be a storm of writes.
    """
    if step.status == story.job.status:
        return step
    return replace(step, status=replace(step.status, last_reconcile_time=story.now))
