"""The loop of MPIJobs: load, validate, decide, render, apply.

One pass looks at one job and nothing else. It may be repeated, late or interrupted anywhere: all
that is kept between passes is a cache of what can be found out again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.labels import LABEL_JOB
from mpi_trainer.api.kinds.mpijob import KIND, MPIJob
from mpi_trainer.api.validation import gang_scheduling, network, worker_limits
from mpi_trainer.api.validation.worker_limits import DEFAULT, WorkerLimits
from mpi_trainer.controller import keeping
from mpi_trainer.controller.agent_scripts import AgentScripts, ScriptsUser
from mpi_trainer.controller.children import NameTaken, NameWait, Predecessor
from mpi_trainer.controller.decoded_jobs import DecodedJobs, Loaded
from mpi_trainer.controller.dependents import Dependents
from mpi_trainer.controller.events import joined_errors, record_event, shortened
from mpi_trainer.controller.job_memory import Clock, JobMemories, Rejection, utc_now
from mpi_trainer.controller.keeping import TERMINATING, Held, Keeping
from mpi_trainer.controller.kept_children import KeptChildren, KeptStores, kept_stores
from mpi_trainer.controller.mpijob import record, status_throttle
from mpi_trainer.controller.mpijob.apply import RefusedPod, Work, Writer
from mpi_trainer.controller.mpijob.desired import desired
from mpi_trainer.controller.mpijob.log_tail import LogTails
from mpi_trainer.controller.mpijob.observe import OwnedObjects, Proof, observe, owned_objects
from mpi_trainer.controller.mpijob.suspicions import Suspicions
from mpi_trainer.controller.mpijob.transitions import count_transitions
from mpi_trainer.controller.mpijob.wakeups import BY_JOB
from mpi_trainer.controller.objects import Job, Pod, StoredJob
from mpi_trainer.controller.observed_pods import foreign
from mpi_trainer.controller.status_throttle import write_time
from mpi_trainer.controller.write_concurrency import WriteConcurrency
from mpi_trainer.decide import finding_text, history, reasons
from mpi_trainer.decide.history import History
from mpi_trainer.decide.mpijob.decide import decide, ours, refused
from mpi_trainer.decide.mpijob.decision import MPIJobDecision
from mpi_trainer.decide.observed import Observed
from mpi_trainer.kube.errors import Forbidden
from mpi_trainer.kube.resources import Resource
from mpi_trainer.layout.hosts import launcher_name
from mpi_trainer.layout.mpijob import choose
from mpi_trainer.render import network_policies
from mpi_trainer.render.agent_scripts import used
from mpi_trainer.render.frame import Facts
from mpi_trainer.render.gang import pod_groups
from mpi_trainer.render.gang.model import PlannedGang
from mpi_trainer.render.gang.volcano import QUEUE
from mpi_trainer.runtime.job_metrics import MPIJobMetrics
from mpi_trainer.runtime.off_loop import POD_BYTES, OffLoop
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.recorder import Recorder
from mpi_trainer.runtime.store import Store, by_label
from mpi_trainer.runtime.workers import DONE, Result, Terminal

log = logging.getLogger(__name__)
replace = msgspec.structs.replace

REFUSED_AGAIN = 10.0
UNSURE_AGAIN = 30.0
KEY_AGAIN = 30.0
TAKEN_OVER_AGAIN = 0.5


class Stores(msgspec.Struct, frozen=True):
    """What the loop sees of the cluster."""

    mpijobs: Store[StoredJob]
    pods: Store[Pod]
    jobs: Store[Job]
    kept: KeptStores

    @classmethod
    def empty(cls, pod_groups: Iterable[Resource] = ()) -> Stores:
        index = {BY_JOB: by_label(LABEL_JOB)}
        return cls(Store(), Store(index), Store(index), kept_stores(pod_groups))

    def children(self, key: Key) -> tuple[tuple[Pod, ...], tuple[Job, ...]]:
        """All that carry this job's name, whosever they are."""
        name = f"{key.namespace}/{key.name}"
        return self.pods.by(BY_JOB, name), self.jobs.by(BY_JOB, name)


class Tools(msgspec.Struct, frozen=True):
    """What the loop works with. All that keep anything of a job keep it in `memories`."""

    memories: JobMemories
    jobs: DecodedJobs[MPIJob]
    scripts: AgentScripts
    dependents: Dependents
    writer: Writer
    kept: KeptChildren
    log_tails: LogTails
    suspicions: Suspicions
    recorder: Recorder
    metrics: MPIJobMetrics
    concurrency: WriteConcurrency
    facts: Facts = Facts()
    limits: WorkerLimits = DEFAULT
    clock: Clock = utc_now
    off_loop: OffLoop = msgspec.field(default_factory=OffLoop)


class _Noted(msgspec.Struct):
    """What one pass tells the next: when the job was first seen, what stood in its way, which
    launchers were its own, and its PodGroup with the state of the job that it is of."""

    first_seen: datetime | None = None
    rejection: Rejection | None = None
    refusal: str = ""
    proof: Proof = frozenset()
    name: NameWait = msgspec.field(default_factory=NameWait)
    taken_over: bool = False
    gang: PlannedGang | None = None
    gang_of: tuple[int, str | None] | None = None


class Reconciler:
    """`reconcile` is one pass over one job."""

    def __init__(self, stores: Stores, tools: Tools) -> None:
        self._stores = stores
        self._tools = tools

    async def reconcile(self, key: Key) -> Result:
        pods, jobs = self._stores.children(key)
        stored = self._stores.mpijobs.get(key)
        if stored is None:
            self._tools.memories.drop(key)
            self._tools.dependents.forget(key)
            self._tools.scripts.note_end(ScriptsUser(KIND, key))
            self._tools.metrics.deleted(key.namespace, launcher_name(key.name))
            await self._tools.writer.release(key, _going(pods))
            return DONE
        if stored.finished:
            self._tools.memories.drop(key)
        else:
            self._tools.memories.begin(key, stored.metadata.uid)
        await self._tools.jobs.prepare(stored)
        loaded = self._tools.jobs.load(stored)
        job = loaded.job
        noted = self._noted(stored.metadata.uid)
        owned = owned_objects(job, pods, jobs, noted.proof)
        noted.proof = owned.proof or noted.proof
        kept = {p.metadata.uid for p in owned.launchers}
        strays = [p for p in _going(pods) if p.metadata.uid not in kept]
        self._note_scripts(key, job, owned)
        if job.metadata.deletion_timestamp is not None:
            await self._tools.writer.release(key, (*owned.launchers, *strays))
            return DONE
        await self._tools.writer.release(key, strays)
        if not ours(job):
            return DONE
        return await self._step(key, stored, loaded, owned)

    async def _step(
        self, key: Key, stored: StoredJob, loaded: Loaded[MPIJob], owned: OwnedObjects
    ) -> Result:
        job = loaded.job
        if loaded.errors and (owned.pods or c.finished(job.status.conditions)):
            # It was valid once: what runs goes on in spite of a later mistake.
            self._record_invalid(loaded)
            return DONE
        try:
            memory = record.read(job.metadata.annotations)
        except record.UnreadableRecord as error:
            self._record_event(job, "Warning", reasons.INVALID, str(error))
            raise Terminal(str(error)) from None
        if self._may_be_anothers(job, owned):
            changed = await self._tools.writer.take_over(stored.metadata)
            self._noted(job.metadata.uid).taken_over = True
            if changed:
                return Result(TAKEN_OVER_AGAIN)
        rejection = self._rejection(loaded)
        tail = "" if rejection else await self._tools.log_tails.failed_launcher(job, memory, owned)
        noted = self._noted(job.metadata.uid)
        observation = observe(job, memory, owned, tail)
        now = self._tools.clock()
        seen = replace(
            observation.seen,
            suspicion=await self._tools.suspicions.text(job, memory, owned, now),
            has_key=observation.seen.has_key or self._tools.dependents.exist(job.metadata.uid),
            refused=noted.refusal or self._tools.memories.part(job.metadata.uid, Keeping).refusal,
        )
        decision = self._decision(job, seen, rejection, now)
        attempts = await self._tools.log_tails.history(job, memory, owned, decision, now)
        decision = _with_cause(job, decision, attempts)
        noted.first_seen = min(noted.first_seen or now, now)
        busy = write_time(self._tools.concurrency.recent_writes)
        wait = status_throttle.wait(job.status, decision.status, noted.first_seen, now, busy)
        observation = replace(observation, seen=seen)
        work = Work(key, job, stored.metadata, observation, decision, now, wait, attempts)
        result = await self._carry_out(work, owned)
        unread = self._tools.suspicions.unread(job)
        return _sooner(Result(UNSURE_AGAIN), result) if unread else result

    def _may_be_anothers(self, job: MPIJob, owned: OwnedObjects) -> bool:
        """Whether a launcher Job may be there that is not watched. The public operator writes no
        lastReconcileTime, and we do; so this is asked once, of jobs that were its."""
        if owned.job is not None or c.finished(job.status.conditions):
            return False
        if self._noted(job.metadata.uid).taken_over:
            return False
        written = bool(job.status.conditions) and job.status.last_reconcile_time is None
        return written or any(foreign(pod.metadata) for pod in owned.workers)

    def _decision(
        self, job: MPIJob, seen: Observed, rejection: Rejection | None, now: datetime
    ) -> MPIJobDecision:
        if rejection is None or c.finished(job.status.conditions):
            return decide(job, seen, now)
        return refused(job, seen.record, rejection.reason, rejection.message, now)

    async def _carry_out(self, work: Work, owned: OwnedObjects) -> Result:
        writer, decision = self._tools.writer, work.decision
        held = await self._keep(work)
        if held is not None and held.rejection is not None:
            return Result(0.0)
        if await writer.store(work):
            count_transitions(self._tools.metrics, work.job, decision.status)
            self._record_events(work)
        if decision.delete_job:
            await writer.delete_job(work)
            return DONE
        gone = await writer.clear(work, owned.launchers)
        if not gone:
            return _sooner(Result(KEY_AGAIN), _next(work))
        await writer.free(work)
        if held is not None:
            return _sooner(held.result(), _next(work))
        if decision.makes:
            again = await self._start(work)
            if again is not None:
                return _sooner(again, _next(work))
        return _next(work)

    async def _keep(self, work: Work) -> Held | None:
        """The children that must exist before any pod, or else why there are none."""
        noted = self._noted(work.metadata.uid)
        over = c.finished(work.decision.status.conditions)
        if not over and noted.rejection is not None:
            return None
        rests = over or bool(work.job.spec.run_policy.suspend)
        closed = network_policies.of_mpijob(work.job, self._tools.facts.isolation)
        planned = None if rests else await self._gang(work.job)
        act = self._tools.kept.keep_all(work.key, work.metadata, None if over else closed, planned)
        known, now = self._tools.memories.part(work.metadata.uid, Keeping), self._tools.clock()
        held = await keeping.tried(act, known, now, starts=bool(work.decision.makes))
        if held is not None and held.rejection is not None:
            noted.rejection = held.rejection
        return held

    async def _gang(self, job: MPIJob) -> PlannedGang | None:
        """Made once for each state of the job, and beside the event loop where it is long."""
        facts, noted = self._tools.facts, self._noted(job.metadata.uid)
        if pod_groups.mpijob_scheduler(facts.gang) is None:
            return None
        state = (job.metadata.generation, job.metadata.annotations.get(QUEUE))
        if noted.gang_of != state:
            size = len(job.launcher.template.json) + len(job.worker.template.json)
            made = self._tools.off_loop.run(
                job.metadata.namespace, size, pod_groups.of_mpijob, job, facts
            )
            noted.gang, noted.gang_of = await made, state
        return noted.gang

    def _await_predecessor(self, noted: _Noted, error: Predecessor) -> Result:
        held = keeping.awaited(error, noted.name, self._tools.clock())
        noted.rejection = held.rejection or noted.rejection
        return held.result()

    async def _start(self, work: Work) -> Result | None:
        noted = self._noted(work.metadata.uid)
        try:
            facts = replace(self._tools.facts, attempt=work.decision.record.attempt)
            namespace, size = work.key.namespace, work.job.workers * POD_BYTES
            wanted = await self._tools.off_loop.run(namespace, size, desired, work.job, facts)
            await self._tools.writer.start(work, wanted)
        except InvalidJob as error:
            noted.rejection = Rejection(reasons.INVALID, shortened(str(error)))
        except NameTaken as error:
            noted.rejection = Rejection(reasons.NAME_TAKEN, str(error))
        except Predecessor as error:
            return self._await_predecessor(noted, error)
        except Forbidden as error:
            if not error.has_cause(TERMINATING):
                raise
            log.info("nothing is made in a namespace that goes: %s", work.key.namespace)
            return Result(REFUSED_AGAIN)
        except RefusedPod as error:
            if error.final:
                noted.rejection = Rejection(reasons.REFUSED, shortened(str(error)))
            else:
                noted.refusal = shortened(str(error))
                return Result(REFUSED_AGAIN)
        else:
            noted.refusal, noted.name = "", NameWait()
            return None
        return Result(0.0)

    def _rejection(self, loaded: Loaded[MPIJob]) -> Rejection | None:
        if loaded.errors:
            text = f"Found validation errors: {joined_errors(loaded.errors)}"
            return Rejection(reasons.INVALID, shortened(text))
        if not loaded.job.status.conditions:
            wrong = (
                *worker_limits.mpijob_errors(loaded.job, self._tools.limits),
                *network.errors(loaded.job, self._tools.facts.isolation),
            )
            if wrong:
                return Rejection(reasons.INVALID, joined_errors(wrong))
        return self._noted(loaded.job.metadata.uid).rejection

    def _record_invalid(self, loaded: Loaded[MPIJob]) -> None:
        text = f"The change is not carried out: {joined_errors(loaded.errors)}"
        self._record_event(loaded.job, "Warning", reasons.INVALID, text)

    def _record_events(self, work: Work) -> None:
        """With what has no effect, when the first status is stored."""
        for event in work.decision.events:
            self._record_event(work.job, event.type, event.reason, event.message)
        if not work.job.status.conditions:
            for text in _without_effect(work.job, self._tools.facts):
                self._record_event(work.job, "Warning", reasons.NO_EFFECT, text)

    def _record_event(self, job: MPIJob, weight: str, reason: str, message: str) -> None:
        record_event(self._tools.recorder, job, weight, reason, message)

    def _note_scripts(self, key: Key, job: MPIJob, owned: OwnedObjects) -> None:
        """Whether the job's pods use the agent's scripts, or may be waiting for them."""
        user = ScriptsUser(KIND, key)
        marks = {} if owned.job is None else owned.job.metadata.annotations
        rests = job.metadata.deletion_timestamp is not None or bool(job.spec.run_policy.suspend)
        over = rests or c.finished(job.status.conditions)
        uses = bool(used(marks)) if owned.job is not None else choose(job).uses_scripts
        if over or (owned.job is not None and not uses):
            self._tools.scripts.note_end(user, marks)
        elif uses and (owned.job is not None or owned.workers):
            begun = owned.job is None or bool(owned.launchers)
            waits = not begun or any(p.status.phase in ("", "Pending") for p in owned.pods)
            self._tools.scripts.note_use(user, marks, waits)

    def _noted(self, uid: str) -> _Noted:
        return self._tools.memories.part(uid, _Noted)


def _with_cause(job: MPIJob, decision: MPIJobDecision, attempts: History | None) -> MPIJobDecision:
    """A decision by which an attempt or the job fails, with why. Where the controller has died in
    between, why the attempt failed is stored already."""
    failure = next(iter(decision.record.failures[-1:]), None)
    if failure is None or c.finished(job.status.conditions):
        return decision
    known = history.read(job.metadata.annotations) if attempts is None else attempts
    found = history.findings(known, failure.attempt)
    failed = c.find(decision.status.conditions, c.FAILED)
    failures = {failure.message, *(() if failed is None else (failed.message,))}
    conditions = finding_text.conditions_with_cause(decision.status.conditions, found)
    return replace(
        decision,
        status=replace(decision.status, conditions=conditions),
        events=finding_text.events_with_cause(decision.events, failures, found),
    )


def _without_effect(job: MPIJob, facts: Facts) -> Iterator[str]:
    """What is asked for, by the job or for all jobs, and not done."""
    scheduler = pod_groups.mpijob_scheduler(facts.gang)
    if scheduler is None:
        yield from map(str, gang_scheduling.mpijob_warnings(job, ": gang scheduling is off"))
    elif scheduler.group not in facts.gang.served:
        yield f"--gang-scheduling: {scheduler.unserved}; {scheduler.install}"


def _going(pods: tuple[Pod, ...]) -> list[Pod]:
    return [p for p in pods if p.metadata.deletion_timestamp is not None]


def _next(work: Work) -> Result:
    """When the next pass is due, should nothing happen before."""
    decision = work.decision
    waits = [decision.requeue_after, work.status_wait or None]
    if decision.acts:
        waits.append(timedelta(seconds=UNSURE_AGAIN))
    soonest = min((w for w in waits if w is not None), default=None)
    return Result(None if soonest is None else soonest / timedelta(seconds=1))


def _sooner(one: Result, other: Result) -> Result:
    return min((r for r in (one, other) if r.after is not None), key=_after, default=one)


def _after(result: Result) -> float:
    return result.after or 0.0
