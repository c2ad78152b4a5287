"""`decide`: from a TrainJob and what is seen of it to what to do next. Pure.

The JobSet runs the job and tries again; here is when there is one, when it rests, and what became
of it. Read `decide` top to bottom: it is the life of a job. As for MPIJobs, success means that the
ranks ended well where they were meant to be, not that a launcher returned 0.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from mpi_trainer.api.effective.combine import LAUNCHER, NODE, TRAINER, Effective, ReplicatedJob
from mpi_trainer.api.kinds.annotations import CLEAN, TTL
from mpi_trainer.api.kinds.managers import TRAINJOB_CONTROLLER
from mpi_trainer.api.kinds.runtime import MPI
from mpi_trainer.api.kinds.trainjob import (
    SUSPENDED,
    ReplicatedJobStatus,
    TrainJob,
    TrainJobCondition,
)
from mpi_trainer.decide import cause_text, deadline, permanent_failures, reasons, success
from mpi_trainer.decide.observed import Failure, Observed
from mpi_trainer.decide.trainjob import status_annotations as f
from mpi_trainer.decide.trainjob import waiting
from mpi_trainer.decide.trainjob.decision import TrainJobDecision
from mpi_trainer.decide.trainjob.observed import ObservedJobSet, ObservedTrainJob
from mpi_trainer.decide.trainjob.status import StatusBuilder, find, finished

replace = msgspec.structs.replace

NOW = timedelta(0)
TOLD_AFTER = timedelta(seconds=10)
TOLD_AGAIN = timedelta(minutes=5)
SOON = timedelta(seconds=0.5)
RETRIED_AFTER = timedelta(seconds=3)
ALL = "All"
UNPROVEN = (
    "The JobSet has completed, but its launcher pod was deleted before the ends of its ranks were "
    "read: that the job succeeded is JobSet's word alone."
)


def decide(
    job: TrainJob, effective: Effective, seen: ObservedTrainJob, now: datetime
) -> TrainJobDecision:
    """The next step of a job that fits its runtime."""
    found, begun = f.read(job.metadata.annotations), _begun(effective, seen.pods)
    story = StatusBuilder(job, now, job.status, found, begun=begun)
    if not ours(job) or job.metadata.deletion_timestamp is not None:
        return TrainJobDecision(story.status, story.annotations)
    if finished(job.status):
        return over(job, seen.job_set, now)
    # An end is honoured first, also of a JobSet that its time to live takes away: nothing else
    # would keep the job from being run again once the JobSet is gone.
    job_set = seen.job_set
    if job_set is not None and job_set.completed is not None:
        return _completed(story, effective, seen, job_set.completed)
    if job_set is not None and job_set.failed is not None:
        return _failed(story, effective, seen, job_set.failed)
    if job.spec.suspend:
        return _suspended(story.suspended(), seen)
    return _active(story.resumed(), effective, seen)


def needs_all_pods(
    job: TrainJob, effective: Effective, seen: ObservedTrainJob, now: datetime
) -> bool:
    """Whether `decide` must see the job's pods as the API server has them now, not as they were
    watched. A job that goes on waits for those of before, one that is slow to start tells what
    they wait for, and one whose JobSet has ended is judged by their ends."""
    job_set = seen.job_set
    if job_set is None or finished(job.status):
        return False
    if job_set.completed is not None:
        return effective.policy == MPI and _ends(seen.pods).launcher() is None
    if job_set.failed is not None:
        return not _cause(effective, seen.pods)
    if job_set.terminating or job.spec.suspend:
        return False
    if job_set.suspended:
        return True
    story = StatusBuilder(job, now, job.status, f.read(job.metadata.annotations)).resumed()
    return _slow(story, job_set) and not _all_run(effective, job_set)


def refused(job: TrainJob, reason: str, message: str, now: datetime) -> TrainJobDecision:
    """The end of a job that cannot be carried out at all, whatever is tried."""
    story = StatusBuilder(job, now, job.status, f.read(job.metadata.annotations))
    return _ended(story.failed(reason, message, message), ObservedTrainJob())


def stalled(job: TrainJob, why: str, now: datetime) -> TrainJobDecision:
    """A job that cannot go on for now, and why; what runs of it is left alone."""
    story = StatusBuilder(job, now, job.status, f.read(job.metadata.annotations))
    if job.spec.suspend:
        story = story.suspended()
    if why:
        story = story.waiting(why)
    return TrainJobDecision(story.status, story.annotations, events=story.events)


def ours(job: TrainJob) -> bool:
    """Whether this controller is the one that the job asks for."""
    return job.spec.managed_by in (None, "", TRAINJOB_CONTROLLER)


def over(job: TrainJob, job_set: ObservedJobSet | None, now: datetime) -> TrainJobDecision:
    """A job that has ended needs nothing but itself to be looked at: not even its runtime."""
    found = f.read(job.metadata.annotations)
    left = deadline.remaining_seconds(_seconds(found.ttl), _end(job, found), now)
    if left is not None and left <= NOW:
        return TrainJobDecision(job.status, found, delete_job=True)
    present = job_set is not None and not job_set.terminating
    running = job_set is not None and job_set.ended is None
    return TrainJobDecision(
        job.status, found, remove=present and (running or found.clean == ALL), requeue_after=left
    )


def _completed(
    story: StatusBuilder, effective: Effective, seen: ObservedTrainJob, told: TrainJobCondition
) -> TrainJobDecision:
    if effective.policy != MPI:
        return _ended(story.complete(told.reason, told.message), seen)
    ends = _ends(seen.pods)
    if ends.launcher() is None:
        if not seen.all_pods:
            return TrainJobDecision(story.status, story.annotations, requeue_after=SOON)
        story = story.warned(reasons.UNPROVEN, UNPROVEN)
    story = replace(story, annotations=replace(story.annotations, placement=seen.placement))
    objection = success.hidden_failure(_cast(effective), ends)
    if objection is not None:
        return _ended(story.failed(objection.reason, objection.message, objection.message), seen)
    odd = success.placement_warning(_cast(effective), ends)
    story = story.warned(reasons.PLACEMENT_SURPRISING, odd)
    return _ended(story.complete(told.reason, told.message), seen)


def _failed(
    story: StatusBuilder, effective: Effective, seen: ObservedTrainJob, told: TrainJobCondition
) -> TrainJobDecision:
    cause = _cause(effective, seen.pods)
    if not cause and not seen.all_pods:
        return TrainJobDecision(story.status, story.annotations, requeue_after=SOON)
    text = f"{told.message}; {cause}" if cause else told.message
    return _ended(story.failed(told.reason, text, cause or told.message), seen)


def _ends(pods: Observed) -> Observed:
    """Those that have ended, which says as much while they are being deleted."""
    ended = tuple(replace(p, terminating=False) for p in pods.pods if p.ended)
    return replace(pods, pods=ended)


def _ended(story: StatusBuilder, seen: ObservedTrainJob) -> TrainJobDecision:
    """The last decision of a job. Its runtime's wishes become its own, since they outlive it, and
    its counts are those at the end: what still runs is on its way out."""
    found = story.annotations
    kept = replace(
        found,
        ttl=found.ttl or seen.runtime_annotations.get(TTL, ""),
        clean=found.clean or seen.runtime_annotations.get(CLEAN, ""),
        placement=found.placement or seen.placement,
    )
    step = _told(replace(story, annotations=kept), seen, requeue_after=NOW)
    return replace(step, status=replace(step.status, jobs_status=_idle(step.status.jobs_status)))


def _suspended(story: StatusBuilder, seen: ObservedTrainJob) -> TrainJobDecision:
    job_set = seen.job_set
    if job_set is None:
        return _told(story, seen, make=True)
    if job_set.terminating or job_set.suspended:
        return _told(story, seen)
    return _told(story, seen, suspend=True)


def _active(story: StatusBuilder, effective: Effective, seen: ObservedTrainJob) -> TrainJobDecision:
    seconds = story.job.spec.active_deadline_seconds
    left = deadline.remaining_seconds(seconds, _since(story), story.now)
    if left is not None and left <= NOW:
        text = deadline.train_message(seconds or 0)
        return _ended(story.failed(reasons.DEADLINE, text, text), seen)
    same = _permanent(effective, seen.pods)
    if same is not None:
        return _ended(story.failed(*same), seen)
    step = _onward(story, effective, seen)
    waits = (w for w in (left, step.requeue_after) if w is not None)
    return replace(step, requeue_after=min(waits, default=None))


def _permanent(effective: Effective, pods: Observed) -> tuple[str, str, str] | None:
    """The end of a job whose JobSet would only repeat it: reason, message, cause."""
    for pod in pods.pods:
        if permanent_failures.has_invalid_image(pod):
            text = permanent_failures.invalid_image(pod)
            return reasons.IMAGE_INVALID, text, text
        reason = permanent_failures.reason(pod, pods) if pod.phase == "Failed" else ""
        if reason:
            failure = Failure(pod.attempt, reason, _cause(effective, pods))
            text = permanent_failures.explained(failure, retries=True).message
            return reason, text, text
    return None


def _onward(story: StatusBuilder, effective: Effective, seen: ObservedTrainJob) -> TrainJobDecision:
    job_set = seen.job_set
    if job_set is not None and job_set.terminating:
        return _told(story, seen)
    if job_set is not None and job_set.suspended:
        return _resumed(story, seen, job_set)
    if job_set is not None and _all_run(effective, job_set):
        return _told(story.running(), seen)
    left = _time_left(story, seen)
    if left is not None and left <= NOW:
        text = waiting.message(story.job.metadata.annotations, seen)
        return _ended(story.failed(reasons.SCHEDULING_TIMEOUT, text, text), seen)
    if job_set is None:
        return _told(_waiting(story, seen), seen, make=True, requeue_after=left)
    step = _stopped(story, effective, seen, job_set)
    waits = (w for w in (left, step.requeue_after) if w is not None)
    return replace(step, requeue_after=min(waits, default=None))


def _stopped(
    story: StatusBuilder, effective: Effective, seen: ObservedTrainJob, job_set: ObservedJobSet
) -> TrainJobDecision:
    """Not all of it runs: a pod has failed, and its Job makes another, or something is waited for.

    A failure is not told before the JobSet had the time to end by it, which says the same.
    """
    failed = _cause(effective, seen.pods)
    if not failed:
        return _told(_waiting(story, seen), seen, requeue_after=_patience(story, job_set))
    rest = RETRIED_AFTER - _waited(story, job_set)
    if rest > NOW:
        return _told(story, seen, requeue_after=rest)
    return _told(story.retried(f"{failed}; its Job tries again"), seen, requeue_after=TOLD_AGAIN)


def _time_left(story: StatusBuilder, seen: ObservedTrainJob) -> timedelta | None:
    if story.annotations.phase == f.RUNNING:
        return None
    return waiting.left(story.job.metadata.annotations, seen, _waited(story, seen.job_set))


def _resumed(
    story: StatusBuilder, seen: ObservedTrainJob, job_set: ObservedJobSet
) -> TrainJobDecision:
    """Not before the pods of before are gone: their ends would count against what goes on."""
    going = [pod for pod in seen.pods.pods if pod.terminating or not pod.ended]
    if going:
        why = f"{going[0].name}, of before the suspension, has not ended yet"
        return _told(_late(story, job_set, why), seen, requeue_after=SOON)
    if job_set.rendered in ("", seen.rendered):
        return _told(story, seen, suspend=False)
    return _told(story, seen, renew=True)


def _told(
    story: StatusBuilder,
    seen: ObservedTrainJob,
    requeue_after: timedelta | None = None,
    **acts: bool,
) -> TrainJobDecision:
    counts = _counts(story.status.jobs_status, seen.job_set)
    status = replace(story.status, jobs_status=counts)
    return TrainJobDecision(
        status, story.annotations, events=story.events, requeue_after=requeue_after, **acts
    )


def _since(story: StatusBuilder) -> datetime:
    """From when a job is active: its creation, or its last resumption."""
    held = find(story.status, SUSPENDED)
    moved = held.last_transition_time if held is not None else None
    return moved or story.job.metadata.creation_timestamp or story.now


def _counts(
    before: tuple[ReplicatedJobStatus, ...], job_set: ObservedJobSet | None
) -> tuple[ReplicatedJobStatus, ...]:
    """The JobSet's own; where it is gone nothing is active any more."""
    if job_set is not None and job_set.jobs:
        return job_set.jobs
    return _idle(before)


def _idle(counts: tuple[ReplicatedJobStatus, ...]) -> tuple[ReplicatedJobStatus, ...]:
    return tuple(replace(one, active=0, ready=0, suspended=0) for one in counts)


def _all_run(effective: Effective, job_set: ObservedJobSet) -> bool:
    """By JobSet's counts, in which a Job is ready once all its pods are, or have ended well."""
    up = {one.name: one.ready + one.succeeded for one in job_set.jobs}
    wanted = _working(effective)
    return bool(wanted) and all(up.get(one.name, 0) >= one.replicas for one in wanted)


def _working(effective: Effective) -> list[ReplicatedJob]:
    """Those whose pods train, or lead those that do."""
    roles = (LAUNCHER, NODE) if effective.policy == MPI else (TRAINER,)
    return [one for one in effective.jobs if one.role in roles and one.count]


def _begun(effective: Effective, pods: Observed) -> datetime | None:
    """When the last pod began, once all have, or a launcher has: when it has ended, the others may
    be gone."""
    starts = [p.started for p in pods.pods if p.started is not None]
    launcher = pods.launcher()
    led = launcher is not None and launcher.started is not None
    wanted = sum(one.count * one.replicas for one in _working(effective))
    return max(starts) if starts and (led or len(starts) >= wanted) else None


def _late(story: StatusBuilder, job_set: ObservedJobSet | None, why: str) -> StatusBuilder:
    """Told once it takes long enough to wonder."""
    return story.waiting(why) if _slow(story, job_set) else story


def _slow(story: StatusBuilder, job_set: ObservedJobSet | None) -> bool:
    return story.annotations.phase != f.RUNNING and _waited(story, job_set) >= TOLD_AFTER


def _waited(story: StatusBuilder, job_set: ObservedJobSet | None) -> timedelta:
    """Since the last sign that it goes forward: where many jobs start, each may take its time."""
    since = _since(story)
    moved = job_set.since if job_set is not None else None
    return story.now - max(since, moved or since)


def _patience(story: StatusBuilder, job_set: ObservedJobSet) -> timedelta | None:
    """How long to leave a job alone that does not run yet: the longer it waits the longer."""
    waited = _waited(story, job_set)
    if waited < TOLD_AFTER:
        return TOLD_AFTER - waited
    return min(max(waited / 4, TOLD_AFTER), TOLD_AGAIN) if _slow(story, job_set) else None


def _waiting(story: StatusBuilder, seen: ObservedTrainJob) -> StatusBuilder:
    """What the scheduler and the kubelets say, once it takes long enough to wonder."""
    if seen.problem:
        return story.waiting(seen.problem)
    why = waiting.told(seen)
    return _late(story, seen.job_set, why) if why else story


def _cause(effective: Effective, pods: Observed) -> str:
    """The launcher's own account where it has one, else the first pod that failed."""
    failed = [p for p in pods.pods if p.phase == "Failed"]
    launcher = next((p for p in failed if p.role == "launcher"), None)
    if launcher is not None and launcher.end is not None:
        if launcher.end.reason in reasons.OF_AGENT:
            return cause_text.agent_verdict(launcher.end)
        text = cause_text.pod_end("Launcher", launcher)
        return text + cause_text.first_failed_rank(pods, text)
    name = "Worker" if effective.policy == MPI else "Pod"
    return cause_text.pod_end(name, failed[0]) if failed else ""


def _cast(effective: Effective) -> success.ExpectedRanks:
    nodes = effective.job(NODE)
    workers = 0 if nodes is None else nodes.count * nodes.replicas
    launcher = f"{effective.name}-launcher-0-0"
    return success.ExpectedRanks(launcher, workers, effective.slots, effective.run_launcher_as_node)


def _end(job: TrainJob, found: f.StatusAnnotations) -> datetime | None:
    told = f.to_time(found.completion_time)
    ends = (c for c in job.status.conditions if c.status == "True" and c.type != SUSPENDED)
    return told or next((c.last_transition_time for c in ends), None)


def _seconds(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else None
