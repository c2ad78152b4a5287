"""The loop of TrainJobs: load, find the runtime, decide, render, apply.

One pass looks at one job and nothing else. It may be repeated, late or interrupted anywhere: all
that is kept between passes is a cache of what can be found out again, and when each status was
written last; where that is not known, it is written at once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime

import msgspec
from msgspec.structs import replace

from mpi_trainer.api.effective.combine import Effective
from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds.annotations import ATTEMPTS
from mpi_trainer.api.kinds.labels import LABEL_TRAINJOB
from mpi_trainer.api.kinds.runtime import CLUSTER, MPI, Runtime
from mpi_trainer.api.kinds.trainjob import FAILED, KIND, TrainJob
from mpi_trainer.api.validation import compatibility, network, worker_limits
from mpi_trainer.api.validation.worker_limits import DEFAULT, WorkerLimits
from mpi_trainer.controller import keeping
from mpi_trainer.controller.agent_scripts import AgentScripts, ScriptsUser
from mpi_trainer.controller.children import NameTaken, NameWait, Predecessor
from mpi_trainer.controller.decoded_jobs import DecodedJobs, Loaded
from mpi_trainer.controller.dependents import Dependents
from mpi_trainer.controller.events import joined_errors, record_event, shortened
from mpi_trainer.controller.job_memory import Clock, JobMemories, Rejection, utc_now
from mpi_trainer.controller.keeping import Held, Keeping
from mpi_trainer.controller.kept_children import KeptChildren, KeptStores, kept_stores
from mpi_trainer.controller.objects import JobSet, Pod, StoredJob
from mpi_trainer.controller.status_throttle import write_time
from mpi_trainer.controller.statusserver.log_progress import LogProgress
from mpi_trainer.controller.trainjob.apply import RefusedJobSet, Work, Writer
from mpi_trainer.controller.trainjob.desired import Desired, desired
from mpi_trainer.controller.trainjob.log_tail import LogTails
from mpi_trainer.controller.trainjob.observe import observe, observed_job_set
from mpi_trainer.controller.trainjob.pods import AllPods, PodOwners
from mpi_trainer.controller.trainjob.runtimes import BadRuntime, NoRuntime, Runtimes, Superseded
from mpi_trainer.controller.trainjob.status_throttle import StatusThrottle
from mpi_trainer.controller.trainjob.transitions import count_transitions
from mpi_trainer.controller.write_concurrency import WriteConcurrency
from mpi_trainer.decide import finding_text, history, reasons
from mpi_trainer.decide.trainjob.decide import (
    after_end,
    decide,
    needs_all_pods,
    ours,
    refused,
    stalled,
)
from mpi_trainer.decide.trainjob.decision import TrainJobDecision
from mpi_trainer.decide.trainjob.observed import ObservedJobSet, ObservedTrainJob
from mpi_trainer.decide.trainjob.status import find, finished, holds
from mpi_trainer.kube.errors import Forbidden
from mpi_trainer.kube.resources import Resource
from mpi_trainer.render import network_policies
from mpi_trainer.render.agent_scripts import used
from mpi_trainer.render.frame import Facts
from mpi_trainer.runtime.job_metrics import TrainJobMetrics
from mpi_trainer.runtime.off_loop import LONG, POD_BYTES, OffLoop
from mpi_trainer.runtime.partial import Key, Meta
from mpi_trainer.runtime.recorder import Recorder
from mpi_trainer.runtime.store import Store, by_label
from mpi_trainer.runtime.workers import DONE, Result

log = logging.getLogger(__name__)

BY_JOB = "job"
RUNTIME_AGAIN = 5.0
REFUSED_AGAIN = 10.0
UNSURE_AGAIN = 30.0
KEY_AGAIN = 30.0
SCRIPTS_AGAIN = 2.0
NOT_SUPPORTED = "TrainingRuntimeNotSupported"
NOT_CREATED = "TrainJobResourcesCreationFailed"
_TAKEN = (
    "metadata.name: an MPIJob of this namespace is called {!r} too, and both would have a Service "
    "of that name; delete one of the two, or give it another name"
)


class Stores(msgspec.Struct, frozen=True):
    """What the loop sees of the cluster: of pods those that have ended. `mpijobs` are the other
    loop's."""

    trainjobs: Store[StoredJob]
    jobsets: Store[JobSet]
    ended_pods: Store[Pod]
    mpijobs: Store[StoredJob]
    kept: KeptStores

    @classmethod
    def beside(cls, mpijobs: Store[StoredJob], pod_groups: Iterable[Resource] = ()) -> Stores:
        ended: Store[Pod] = Store({BY_JOB: by_label(LABEL_TRAINJOB)})
        return cls(Store(), Store(), ended, mpijobs, kept_stores(pod_groups))

    def has_elder(self, key: Key, meta: Meta) -> bool:
        """An MPIJob had this name first, and so has the Service, which JobSet would share."""
        other = self.mpijobs.get(key)
        born = None if other is None else other.metadata.creation_timestamp
        return born is not None and (
            meta.creation_timestamp is None or born <= meta.creation_timestamp
        )


class Tools(msgspec.Struct, frozen=True):
    """What the loop works with. All that keep anything of a job keep it in `memories`. `only` are
    the runtimes that are ours; empty: all are."""

    memories: JobMemories
    jobs: DecodedJobs[TrainJob]
    scripts: AgentScripts
    runtimes: Runtimes
    dependents: Dependents
    all_pods: AllPods
    pod_owners: PodOwners
    log_tails: LogTails
    log_progress: LogProgress
    writer: Writer
    kept: KeptChildren
    concurrency: WriteConcurrency
    recorder: Recorder
    metrics: TrainJobMetrics
    facts: Facts = Facts()
    only: frozenset[str] = frozenset()
    schedule_timeout: int = 0
    limits: WorkerLimits = DEFAULT
    clock: Clock = utc_now
    off_loop: OffLoop = msgspec.field(default_factory=OffLoop)


class _Plan(msgspec.Struct, frozen=True):
    generation: int
    desired: Desired | None = None
    rejection: Rejection | None = None


class _Noted(msgspec.Struct):
    """What one pass tells the next: when the job was first seen, its JobSet, what the job should
    be, and what stands in its way."""

    first_seen: datetime | None = None
    job_set: ObservedJobSet | None = None
    plan: _Plan | None = None
    rejection: Rejection | None = None
    trouble: str = ""
    name: NameWait = msgspec.field(default_factory=NameWait)


class Reconciler:
    """`reconcile` is one pass over one job."""

    def __init__(self, stores: Stores, tools: Tools) -> None:
        self._stores = stores
        self._tools = tools

    async def reconcile(self, key: Key) -> Result:
        stored = self._stores.trainjobs.get(key)
        if stored is None:
            self._tools.memories.drop(key)
            self._tools.dependents.forget(key)
            self._tools.scripts.note_end(ScriptsUser(KIND, key))
            return DONE
        if stored.finished:
            self._tools.memories.drop(key)
        else:
            self._tools.memories.begin(key, stored.metadata.uid)
        await self._tools.jobs.prepare(stored)
        loaded = self._tools.jobs.load(stored)
        job = loaded.job
        if job.metadata.deletion_timestamp is not None or not self._is_ours(job):
            return DONE
        now, uid = self._tools.clock(), job.metadata.uid
        noted = self._noted(uid)
        noted.first_seen = noted.first_seen or now
        found = observed_job_set(self._stores.jobsets.get(key), uid)
        job_set = noted.job_set = _dated(found, noted.job_set, now)
        self._note_scripts(key, job, job_set)
        if finished(job.status):
            work = Work(key, job, stored.metadata, job_set, after_end(job, job_set, now), now)
            return await self._carry_out(work, None)
        try:
            plan = await self._plan(stored, loaded, job_set)
            decision = await self._decision(job, job_set, plan, now)
            work = Work(key, job, stored.metadata, job_set, decision, now)
            result = await self._carry_out(work, plan.desired)
            return await self._with_progress(work, plan.desired, result)
        except NoRuntime as error:
            self._record_event(job, "Warning", NOT_CREATED, str(error))
            decision = stalled(job, str(error), now)
            work = Work(key, job, stored.metadata, job_set, decision, now)
            again = await self._carry_out(work, None)
            return Result(min(again.after or RUNTIME_AGAIN, RUNTIME_AGAIN))
        except Superseded as error:
            log.info("another snapshot was in the way: %s", error)
            noted.plan = None
            return Result(0.0)

    def _is_ours(self, job: TrainJob) -> bool:
        only = self._tools.only
        return ours(job) and (not only or job.spec.runtime_ref.name in only)

    def _note_scripts(self, key: Key, job: TrainJob, job_set: ObservedJobSet | None) -> None:
        """Whether the job's pods use the agent's scripts, or may be waiting for them."""
        user, found = ScriptsUser(KIND, key), self._stores.jobsets.get(key)
        marks = {} if found is None or job_set is None else found.metadata.annotations
        if job_set is None or job_set.suspended or finished(job.status) or not used(marks):
            self._tools.scripts.note_end(user, marks)
        else:
            waits = not job_set.jobs or any(one.active > one.ready for one in job_set.jobs)
            self._tools.scripts.note_use(user, marks, waits)

    # --- what it should be -------------------------------------------------------------------

    async def _plan(
        self, stored: StoredJob, loaded: Loaded[TrainJob], job_set: ObservedJobSet | None
    ) -> _Plan:
        meta, job = stored.metadata, loaded.job
        noted = self._noted(meta.uid)
        if noted.plan is not None and noted.plan.generation == meta.generation:
            return noted.plan
        if loaded.errors:
            return _rejected(meta.generation, reasons.INVALID, joined_errors(loaded.errors))
        try:
            made_from = None if job_set is None else job_set.runtime
            runtime = await self._tools.runtimes.of_job(job, meta, made_from)
            plan = await self._planned(stored, job, runtime)
        except BadRuntime as error:
            plan = _rejected(meta.generation, NOT_SUPPORTED, str(error))
        except NameTaken as error:
            plan = _rejected(meta.generation, reasons.NAME_TAKEN, str(error))
        noted.plan = plan
        return plan

    async def _planned(self, stored: StoredJob, job: TrainJob, runtime: Runtime) -> _Plan:
        """Beside the event loop where users have a say in how long that takes."""
        size = stored.spec_size + _nodes(job, runtime) * POD_BYTES
        size = size if runtime.kind == CLUSTER else LONG
        generation, namespace = stored.metadata.generation, stored.metadata.namespace
        return await self._tools.off_loop.run(
            namespace, size, _planned, job, runtime, self._tools.facts, generation
        )

    async def _decision(
        self, job: TrainJob, job_set: ObservedJobSet | None, plan: _Plan, now: datetime
    ) -> TrainJobDecision:
        uid = job.metadata.uid
        noted = self._noted(uid)
        rejection = plan.rejection or noted.rejection or self._over_limit(job, plan)
        if rejection is not None and job_set is None:
            return refused(job, rejection.reason, rejection.message, now)
        if plan.rejection is not None:
            # It was valid once: what runs goes on in spite of a later mistake.
            text = f"The change is not carried out: {plan.rejection.message}"
            self._record_event(job, "Warning", plan.rejection.reason, text)
        if plan.desired is None:
            return stalled(job, "", now)
        effective = plan.desired.effective
        everything = ObservedTrainJob(
            job_set=job_set,
            rendered=plan.desired.rendered,
            runtime_annotations=plan.desired.runtime_annotations,
            problem=noted.trouble or self._tools.memories.part(uid, Keeping).refusal,
            schedule_timeout=self._tools.schedule_timeout,
        )
        watched = self._stores.ended_pods.by(BY_JOB, f"{job.namespace}/{job.name}")
        own = await self._own(job, job_set, watched)
        everything = _with_pods(everything, own, effective)
        if needs_all_pods(job, effective, everything, now):
            own = await self._own(job, job_set, await self._tools.all_pods.listed(job))
            everything = replace(_with_pods(everything, own, effective), all_pods=True)
        decision = decide(job, effective, everything, now)
        return await self._with_attempts(job, effective, job_set, own, decision, now)

    def _over_limit(self, job: TrainJob, plan: _Plan) -> Rejection | None:
        pods = 0 if plan.desired is None else plan.desired.effective.pods
        wrong = [*worker_limits.trainjob_errors(job, pods, self._tools.limits)]
        if plan.desired is not None:
            default = self._tools.facts.isolation
            wrong += network.trainjob_errors(job, plan.desired.effective, default)
        return Rejection(reasons.INVALID, joined_errors(wrong)) if wrong else None

    async def _own(
        self, job: TrainJob, job_set: ObservedJobSet | None, pods: Iterable[Pod]
    ) -> tuple[Pod, ...]:
        """Those of `pods` that are the JobSet's, as they may be shown."""
        uid = "" if job_set is None else job_set.uid
        own = await self._tools.pod_owners.owned(job, uid, pods)
        return self._tools.log_tails.shown(job, own)

    async def _with_attempts(
        self,
        job: TrainJob,
        effective: Effective,
        job_set: ObservedJobSet | None,
        own: tuple[Pod, ...],
        decision: TrainJobDecision,
        now: datetime,
    ) -> TrainJobDecision:
        """The decision with what became of the job's attempts, which is stored with it."""
        log_tails = self._tools.log_tails
        fails = holds(decision.status, FAILED)
        if job_set is not None and (fails or decision.suspend):
            attempts = await log_tails.history_at_end(job, effective, job_set, decision, now)
        else:
            attempts = await log_tails.history(job, effective, own, decision, now)
        decision = replace(decision, annotations=replace(decision.annotations, attempts=attempts))
        return _with_cause(decision) if fails else decision

    # --- carrying out ------------------------------------------------------------------------

    async def _carry_out(self, work: Work, wanted: Desired | None) -> Result:
        writer, decision = self._tools.writer, work.decision
        held = await self._keep(work, wanted)
        if held is not None and held.rejection is not None:
            return Result(0.0)
        framework = "" if wanted is None else wanted.effective.policy
        busy = write_time(self._tools.concurrency.recent_writes)
        throttle = self._tools.memories.part(work.metadata.uid, StatusThrottle)
        first_seen = self._noted(work.metadata.uid).first_seen or work.now
        due = throttle.due(work.job, decision, first_seen, work.now, busy)
        now = due.decision
        if now is not None and await writer.store(replace(work, decision=now)):
            throttle.written(now, work.now)
            count_transitions(self._tools.metrics, work.job, framework, now)
            for event in now.events:
                self._record_event(work.job, event.type, event.reason, event.message)
        if now is not decision:
            waits = (
                w.total_seconds() for w in (due.later, decision.requeue_after) if w is not None
            )
            return Result(min(waits, default=None))
        if decision.delete_job:
            await writer.delete_job(work)
            return DONE
        stays = held is not None and decision.starts
        again = None if stays else await self._act(work, wanted)
        if again is None and not await writer.delete_key(work):
            again = Result(min(KEY_AGAIN, _next(decision).after or KEY_AGAIN))
        if held is not None:
            return held.result()
        return again or _next(decision)

    async def _with_progress(self, work: Work, wanted: Desired | None, result: Result) -> Result:
        """After the pass, what its program prints of its progress, where that is wanted."""
        if wanted is None or work.job_set is None or finished(work.decision.status):
            return result
        log_progress, uid = self._tools.log_progress, work.job_set.uid
        again = await log_progress.store_due(work.job, wanted.effective, uid, work.now)
        waits = (w for w in (result.after, again) if w is not None)
        return Result(min(waits, default=None))

    async def _keep(self, work: Work, wanted: Desired | None) -> Held | None:
        """The children that must exist before any pod, or else why there are none."""
        noted, kept = self._noted(work.metadata.uid), self._tools.kept
        over = finished(work.decision.status)
        if not over and (wanted is None or noted.rejection is not None):
            return None
        if work.decision.make and self._stores.has_elder(work.key, work.metadata):
            noted.rejection = Rejection(reasons.NAME_TAKEN, _TAKEN.format(work.key.name))
            return Held(noted.rejection)
        closed, planned = None, None
        if not over and wanted is not None:
            # Of the job as it is now: annotations change without a new plan.
            closed = network_policies.of_trainjob(work.job, wanted.effective, self._tools.facts)
            planned = None if work.job.spec.suspend else wanted.children.gang
        act = kept.keep_all(work.key, work.metadata, closed, planned)
        known, now = self._tools.memories.part(work.metadata.uid, Keeping), self._tools.clock()
        held = await keeping.tried(act, known, now, starts=work.decision.starts)
        if held is not None and held.rejection is not None:
            noted.rejection = held.rejection
        return held

    def _await_predecessor(self, noted: _Noted, error: Predecessor) -> Result:
        held = keeping.awaited(error, noted.name, self._tools.clock())
        noted.rejection = held.rejection or noted.rejection
        return held.result()

    async def _act(self, work: Work, wanted: Desired | None) -> Result | None:
        writer, decision = self._tools.writer, work.decision
        if decision.remove:
            await writer.remove(work)
        elif decision.suspend is not None or decision.renew:
            return await self._change(work, wanted)
        elif wanted is not None and decision.make:
            return await self._create(work, wanted)
        return None

    async def _change(self, work: Work, wanted: Desired | None) -> Result | None:
        writer, decision = self._tools.writer, work.decision
        try:
            if decision.suspend is not None:
                await writer.set_suspended(work, wanted, decision.suspend)
            elif wanted is not None:
                await writer.renew(work, wanted)
        except Predecessor as error:
            log.info("waiting: %s", error)
            return Result(SCRIPTS_AGAIN)
        return None

    async def _create(self, work: Work, wanted: Desired) -> Result | None:
        noted = self._noted(work.metadata.uid)
        try:
            await self._tools.writer.create(work, wanted)
        except NameTaken as error:
            noted.rejection = Rejection(reasons.NAME_TAKEN, str(error))
            return Result(0.0)
        except RefusedJobSet as error:
            noted.rejection = Rejection(reasons.REFUSED_TRAINJOB, shortened(str(error)))
            return Result(0.0)
        except Predecessor as error:
            return self._await_predecessor(noted, error)
        except Forbidden as error:
            noted.trouble = shortened(str(error))
            self._record_event(work.job, "Warning", NOT_CREATED, shortened(str(error)))
            return Result(REFUSED_AGAIN)
        noted.trouble, noted.name = "", NameWait()
        metrics, policy = self._tools.metrics, wanted.effective.policy
        metrics.created.labels(work.key.namespace, policy).inc()
        if wanted.without_effect:
            self._record_event(work.job, "Warning", reasons.NO_EFFECT, wanted.without_effect)
        return None

    def _record_event(self, job: TrainJob, weight: str, reason: str, message: str) -> None:
        record_event(self._tools.recorder, job, weight, reason, message)

    def _noted(self, uid: str) -> _Noted:
        return self._tools.memories.part(uid, _Noted)


def _planned(job: TrainJob, runtime: Runtime, facts: Facts, generation: int) -> _Plan:
    wrong = compatibility.errors(job, runtime)
    if wrong:
        return _rejected(generation, NOT_SUPPORTED, joined_errors(wrong))
    try:
        return _Plan(generation, desired(job, runtime, facts))
    except InvalidJob as error:
        return _rejected(generation, reasons.INVALID, str(error))


def _with_cause(decision: TrainJobDecision) -> TrainJobDecision:
    """A decision by which the job fails, with why its last attempt did; where its time was over,
    earlier attempts are not why."""
    failed = find(decision.status, FAILED)
    known = history.read({ATTEMPTS: decision.annotations.attempts})
    reason = "" if failed is None else failed.reason
    late = reason in (reasons.DEADLINE, reasons.SCHEDULING_TIMEOUT)
    earlier = late and bool(known) and known[-1].reason != reason
    found = () if earlier else history.findings(known)
    failures = () if failed is None else (failed.message,)
    conditions = finding_text.conditions_with_cause(decision.status.conditions, found)
    return replace(
        decision,
        status=replace(decision.status, conditions=conditions),
        events=finding_text.events_with_cause(decision.events, failures, found),
    )


def _rejected(generation: int, reason: str, message: str) -> _Plan:
    return _Plan(generation, rejection=Rejection(reason, shortened(message)))


def _dated(
    found: ObservedJobSet | None, known: ObservedJobSet | None, now: datetime
) -> ObservedJobSet | None:
    """The JobSet with the time since when it was seen to be as it is."""
    if found is None:
        return None
    same = known is not None and replace(known, since=None) == found
    return known if same else replace(found, since=now)


def _with_pods(
    seen: ObservedTrainJob, own: tuple[Pod, ...], effective: Effective
) -> ObservedTrainJob:
    sight = observe(own, effective.policy == MPI, effective.nodes)
    return replace(seen, pods=sight.seen, placement=sight.placement)


def _nodes(job: TrainJob, runtime: Runtime) -> int:
    """As many as they ask for, before that is validated."""
    policy = runtime.spec.ml_policy
    return job.trainer.num_nodes or (policy and policy.num_nodes) or 1


def _next(decision: TrainJobDecision) -> Result:
    """When the next pass is due, should nothing happen before."""
    waits = [] if decision.requeue_after is None else [decision.requeue_after.total_seconds()]
    if decision.acts:
        waits.append(UNSURE_AGAIN)
    return Result(min(waits, default=None))
