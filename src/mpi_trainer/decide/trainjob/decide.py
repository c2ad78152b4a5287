"""`decide`: from a TrainJob and what is observed of it to what to do next. Pure.

The JobSet runs the job and tries again; here is when there is one, when it is suspended, and what
became of it. Read `decide` top to bottom: it is the life of a job. As for MPIJobs, success means
that the ranks ended well where they were meant to be, not that a launcher returned 0.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from mpi_trainer.api.effective.combine import LAUNCHER, NODE, Effective
from mpi_trainer.api.kinds.annotations import CLEAN, TTL
from mpi_trainer.api.kinds.managers import TRAINJOB_CONTROLLER
from mpi_trainer.api.kinds.runtime import MPI
from mpi_trainer.api.kinds.trainjob import SUSPENDED, TrainJob, TrainJobCondition
from mpi_trainer.decide import deadline, reasons, success
from mpi_trainer.decide.observed import Observed
from mpi_trainer.decide.trainjob import attempts, replicas, waiting
from mpi_trainer.decide.trainjob import status_annotations as f
from mpi_trainer.decide.trainjob.decision import TrainJobDecision
from mpi_trainer.decide.trainjob.observed import ObservedJobSet, ObservedTrainJob
from mpi_trainer.decide.trainjob.status import StatusBuilder, ended_at, find, finished
from mpi_trainer.layout.hosts import host_name

replace = msgspec.structs.replace

NOW = timedelta(0)
FIRST_MESSAGE = timedelta(seconds=10)
LAST_INTERVAL = timedelta(minutes=5)
SOON = timedelta(seconds=0.5)
RETRIED_AFTER = timedelta(seconds=3)
ALL = "All"
UNPROVEN = (
    "The JobSet has completed, but its launcher pod was deleted before the ends of its ranks were "
    "read: that the job succeeded is JobSet's word alone."
)


def decide(
    job: TrainJob, effective: Effective, observed: ObservedTrainJob, now: datetime
) -> TrainJobDecision:
    """The next step of a job that fits its runtime."""
    found, begun = f.read(job.metadata.annotations), replicas.last_start(effective, observed.pods)
    builder = StatusBuilder(job, now, job.status, found, begun=begun)
    if not ours(job) or job.metadata.deletion_timestamp is not None:
        return TrainJobDecision(builder.status, builder.annotations)
    if finished(job.status):
        return after_end(job, observed.job_set, now)
    # An end is honoured first, also of a JobSet that its time to live takes away: nothing else
    # would keep the job from being run again once the JobSet is gone.
    job_set = observed.job_set
    if job_set is not None and job_set.completed is not None:
        return _completed(builder, effective, observed, job_set.completed)
    if job_set is not None and job_set.failed is not None:
        return _failed(builder, effective, observed, job_set.failed)
    if job.spec.suspend:
        return _suspended(builder.suspended(), observed)
    return _active(builder.resumed(), effective, observed)


def needs_all_pods(
    job: TrainJob, effective: Effective, observed: ObservedTrainJob, now: datetime
) -> bool:
    """Whether `decide` must see the job's pods as the API server has them now, not as they were
    watched. A job that is resumed waits for the pods of before, one that is slow to start says
    what its pods wait for, and one whose JobSet has ended is judged by their ends."""
    job_set = observed.job_set
    if job_set is None or finished(job.status):
        return False
    if job_set.completed is not None:
        return effective.policy == MPI and _ends(observed.pods).launcher() is None
    if job_set.failed is not None:
        return not attempts.failure_cause(effective, observed.pods)
    if job_set.terminating or job.spec.suspend:
        return False
    if job_set.suspended:
        return True
    builder = StatusBuilder(job, now, job.status, f.read(job.metadata.annotations)).resumed()
    return _is_slow(builder, job_set) and not replicas.all_run(effective, job_set)


def refused(job: TrainJob, reason: str, message: str, now: datetime) -> TrainJobDecision:
    """The end of a job that cannot be carried out at all, whatever is tried."""
    builder = StatusBuilder(job, now, job.status, f.read(job.metadata.annotations))
    return _ended(builder.failed(reason, message), ObservedTrainJob())


def stalled(job: TrainJob, why: str, now: datetime) -> TrainJobDecision:
    """A job that cannot go on for now, and why; what runs of it is left alone."""
    builder = StatusBuilder(job, now, job.status, f.read(job.metadata.annotations))
    if job.spec.suspend:
        builder = builder.suspended()
    if why:
        builder = builder.waiting(why)
    return TrainJobDecision(builder.status, builder.annotations, events=builder.events)


def ours(job: TrainJob) -> bool:
    """Whether this controller is the one that the job asks for."""
    return job.spec.managed_by in (None, "", TRAINJOB_CONTROLLER)


def expected_ranks(effective: Effective) -> success.ExpectedRanks:
    nodes = effective.job(NODE)
    workers = 0 if nodes is None else nodes.count * nodes.replicas
    launcher = host_name(effective.name, LAUNCHER)
    return success.ExpectedRanks(launcher, workers, effective.slots, effective.run_launcher_as_node)


def after_end(job: TrainJob, job_set: ObservedJobSet | None, now: datetime) -> TrainJobDecision:
    """Needs nothing but the job and its JobSet, not even the runtime."""
    found = f.read(job.metadata.annotations)
    left = deadline.remaining_seconds(f.to_seconds(found.ttl), ended_at(job, found), now)
    if left is not None and left <= NOW:
        return TrainJobDecision(job.status, found, delete_job=True)
    present = job_set is not None and not job_set.terminating
    running = job_set is not None and job_set.ended is None
    return TrainJobDecision(
        job.status, found, remove=present and (running or found.clean == ALL), requeue_after=left
    )


def _completed(
    builder: StatusBuilder,
    effective: Effective,
    observed: ObservedTrainJob,
    condition: TrainJobCondition,
) -> TrainJobDecision:
    if effective.policy != MPI:
        return _ended(builder.complete(condition.reason, condition.message), observed)
    ends = _ends(observed.pods)
    if ends.launcher() is None:
        if not observed.all_pods:
            return TrainJobDecision(builder.status, builder.annotations, requeue_after=SOON)
        builder = builder.warned(reasons.UNPROVEN, UNPROVEN)
    builder = replace(
        builder, annotations=replace(builder.annotations, placement=observed.placement)
    )
    hidden = success.hidden_failure(expected_ranks(effective), ends)
    if hidden is not None:
        return _ended(builder.failed(hidden.reason, hidden.message), observed)
    odd = success.placement_warning(expected_ranks(effective), ends)
    builder = builder.warned(reasons.PLACEMENT_SURPRISING, odd)
    return _ended(builder.complete(condition.reason, condition.message), observed)


def _failed(
    builder: StatusBuilder,
    effective: Effective,
    observed: ObservedTrainJob,
    condition: TrainJobCondition,
) -> TrainJobDecision:
    cause = attempts.failure_cause(effective, observed.pods)
    if not cause and not observed.all_pods:
        return TrainJobDecision(builder.status, builder.annotations, requeue_after=SOON)
    text = f"{condition.message}; {cause}" if cause else condition.message
    return _ended(builder.failed(condition.reason, text, cause or condition.message), observed)


def _ends(pods: Observed) -> Observed:
    """Those that have ended, which says as much while they are being deleted."""
    ended = tuple(replace(p, terminating=False) for p in pods.pods if p.ended)
    return replace(pods, pods=ended)


def _ended(builder: StatusBuilder, observed: ObservedTrainJob) -> TrainJobDecision:
    """The last decision of a job. What its runtime asks for becomes its own, since the runtime may
    be gone later, and its counts are those at the end: what still runs is on its way out."""
    found = builder.annotations
    kept = replace(
        found,
        ttl=found.ttl or observed.runtime_annotations.get(TTL, ""),
        clean=found.clean or observed.runtime_annotations.get(CLEAN, ""),
        placement=found.placement or observed.placement,
    )
    step = _step(replace(builder, annotations=kept), observed, requeue_after=NOW)
    return replace(
        step, status=replace(step.status, jobs_status=replicas.after_end(step.status.jobs_status))
    )


def _suspended(builder: StatusBuilder, observed: ObservedTrainJob) -> TrainJobDecision:
    job_set = observed.job_set
    if job_set is None:
        return _step(builder, observed, make=True)
    if job_set.terminating or job_set.suspended:
        return _step(builder, observed)
    return _step(builder, observed, suspend=True)


def _active(
    builder: StatusBuilder, effective: Effective, observed: ObservedTrainJob
) -> TrainJobDecision:
    seconds = builder.job.spec.active_deadline_seconds
    left = deadline.remaining_seconds(seconds, _since(builder), builder.now)
    if left is not None and left <= NOW:
        text = deadline.train_message(seconds or 0)
        return _ended(builder.failed(reasons.DEADLINE, text), observed)
    permanent = attempts.permanent_failure(effective, observed.pods)
    if permanent is not None:
        return _ended(builder.failed(permanent.reason, permanent.message), observed)
    step = _run(builder, effective, observed)
    waits = (w for w in (left, step.requeue_after) if w is not None)
    return replace(step, requeue_after=min(waits, default=None))


def _run(
    builder: StatusBuilder, effective: Effective, observed: ObservedTrainJob
) -> TrainJobDecision:
    job_set = observed.job_set
    if job_set is not None and job_set.terminating:
        return _step(builder, observed)
    if job_set is not None and job_set.suspended:
        return _resumed(builder, observed, job_set)
    if job_set is not None and replicas.all_run(effective, job_set):
        return _step(builder.running(), observed)
    left = _time_left(builder, observed)
    if left is not None and left <= NOW:
        text = waiting.timeout_message(builder.job.metadata.annotations, observed)
        return _ended(builder.failed(reasons.SCHEDULING_TIMEOUT, text), observed)
    if job_set is None:
        return _step(_with_wait_cause(builder, observed), observed, make=True, requeue_after=left)
    step = _not_all_run(builder, effective, observed, job_set)
    waits = (w for w in (left, step.requeue_after) if w is not None)
    return replace(step, requeue_after=min(waits, default=None))


def _not_all_run(
    builder: StatusBuilder,
    effective: Effective,
    observed: ObservedTrainJob,
    job_set: ObservedJobSet,
) -> TrainJobDecision:
    """Not all of it runs: a pod has failed, and its Job makes another, or something is waited for.

    A failure is reported only after the JobSet had the time to end by it, which says the same.
    """
    failed = attempts.failure_cause(effective, observed.pods)
    if not failed:
        return _step(
            _with_wait_cause(builder, observed),
            observed,
            requeue_after=_next_pass(builder, job_set),
        )
    rest = RETRIED_AFTER - _waited(builder, job_set)
    if rest > NOW:
        return _step(builder, observed, requeue_after=rest)
    return _step(
        builder.retried(f"{failed}; its Job tries again"), observed, requeue_after=LAST_INTERVAL
    )


def _time_left(builder: StatusBuilder, observed: ObservedTrainJob) -> timedelta | None:
    if builder.annotations.phase == f.RUNNING:
        return None
    return waiting.time_left(
        builder.job.metadata.annotations, observed, _waited(builder, observed.job_set)
    )


def _resumed(
    builder: StatusBuilder, observed: ObservedTrainJob, job_set: ObservedJobSet
) -> TrainJobDecision:
    """Not before the pods of before the suspension are gone: their ends would count as new ones."""
    going = [pod for pod in observed.pods.pods if pod.terminating or not pod.ended]
    if going:
        why = f"{going[0].name}, of before the suspension, has not ended yet"
        return _step(_with_cause_if_slow(builder, job_set, why), observed, requeue_after=SOON)
    if job_set.rendered in ("", observed.rendered):
        return _step(builder, observed, suspend=False)
    return _step(builder, observed, renew=True)


def _step(
    builder: StatusBuilder,
    observed: ObservedTrainJob,
    requeue_after: timedelta | None = None,
    **acts: bool,
) -> TrainJobDecision:
    counts = replicas.counts(builder.status.jobs_status, observed.job_set)
    status = replace(builder.status, jobs_status=counts)
    return TrainJobDecision(
        status, builder.annotations, events=builder.events, requeue_after=requeue_after, **acts
    )


def _since(builder: StatusBuilder) -> datetime:
    """From when a job is active: its creation, or its last resumption."""
    held = find(builder.status, SUSPENDED)
    moved = held.last_transition_time if held is not None else None
    return moved or builder.job.metadata.creation_timestamp or builder.now


def _with_cause_if_slow(
    builder: StatusBuilder, job_set: ObservedJobSet | None, why: str
) -> StatusBuilder:
    """With the cause, once the job is slow."""
    return builder.waiting(why) if _is_slow(builder, job_set) else builder


def _is_slow(builder: StatusBuilder, job_set: ObservedJobSet | None) -> bool:
    return builder.annotations.phase != f.RUNNING and _waited(builder, job_set) >= FIRST_MESSAGE


def _waited(builder: StatusBuilder, job_set: ObservedJobSet | None) -> timedelta:
    """Since the last sign that it goes forward: where many jobs start, each may take its time."""
    since = _since(builder)
    moved = job_set.since if job_set is not None else None
    return builder.now - max(since, moved or since)


def _next_pass(builder: StatusBuilder, job_set: ObservedJobSet) -> timedelta | None:
    """When to decide again about a job that does not run yet: the longer it waits the later."""
    waited = _waited(builder, job_set)
    if waited < FIRST_MESSAGE:
        return FIRST_MESSAGE - waited
    return (
        min(max(waited / 4, FIRST_MESSAGE), LAST_INTERVAL) if _is_slow(builder, job_set) else None
    )


def _with_wait_cause(builder: StatusBuilder, observed: ObservedTrainJob) -> StatusBuilder:
    """With what the job waits for, where that is known."""
    if observed.problem:
        return builder.waiting(observed.problem)
    why = waiting.message(observed)
    return _with_cause_if_slow(builder, observed.job_set, why) if why else builder
