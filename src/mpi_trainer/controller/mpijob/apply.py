"""Carrying out a decision about an MPIJob. The only place that changes anything for MPIJobs.

The order is fixed: record, status, stop, free, dependents, pods and launcher, then events. A
controller that dies between two steps leaves a state from which the next pass goes on. Every write
is guarded: the job's by its resourceVersion, a stop by the uid that was seen, a start by its fixed
name. The key of a job that has ended is deleted after its end is stored and before its launcher pod
is released: until then the pod's finalizer remembers it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from functools import partial

import msgspec

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.annotations import ATTEMPT, WORKERS
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.controller import status, status_throttle
from mpi_trainer.controller.children import NameTaken, Predecessor, get_or_create
from mpi_trainer.controller.dependents import Dependents
from mpi_trainer.controller.guarded_writes import GuardedWrites
from mpi_trainer.controller.mpijob import record
from mpi_trainer.controller.mpijob.desired import Desired
from mpi_trainer.controller.mpijob.observe import Observation, made_by
from mpi_trainer.controller.mpijob.release import release_request
from mpi_trainer.controller.mpijob.takeover import TakeOver
from mpi_trainer.controller.objects import Answer, Job, Pod
from mpi_trainer.controller.observed_pods import attempt
from mpi_trainer.controller.write_concurrency import WriteConcurrency
from mpi_trainer.decide.history import History
from mpi_trainer.decide.mpijob.decision import MPIJobDecision
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Conflict, Forbidden, Invalid, NotFound
from mpi_trainer.kube.requests import Propagation
from mpi_trainer.kube.resources import JOBS, MPIJOBS, PODS, Resource
from mpi_trainer.layout.hosts import launcher_name
from mpi_trainer.render import names
from mpi_trainer.runtime.freshness import Freshness
from mpi_trainer.runtime.partial import Key, Meta

Act = Callable[[], Awaitable[None]]


class RefusedPod(Exception):
    """The API server will not take a pod of this job. `final` where waiting cannot help."""

    def __init__(self, text: str, final: bool) -> None:
        self.final = final
        super().__init__(text)


class Work(msgspec.Struct, frozen=True):
    """What was observed of a job and what is to be done. `metadata` is the job's as it was then;
    `status_wait` is how long its new status may wait to be written, None where it is the old one;
    `attempts` is what became of them, where that has changed."""

    key: Key
    job: MPIJob
    metadata: Meta
    observation: Observation
    decision: MPIJobDecision
    now: datetime
    status_wait: timedelta | None
    attempts: History | None = None


class Writer:
    """Stateless but for what `dependents` and `freshness` remember."""

    def __init__(
        self,
        client: Client,
        dependents: Dependents,
        freshness: Freshness[Key, Resource],
        concurrency: WriteConcurrency,
    ) -> None:
        self._client = client
        self._dependents = dependents
        self._freshness = freshness
        self._concurrency = concurrency
        self._writes = GuardedWrites(client, MPIJOBS, freshness, concurrency)
        self._takeover = TakeOver(client, self._writes)

    # --- what is stored of the job -----------------------------------------------------------

    async def store(self, work: Work) -> bool:
        """Record and status, in this order; whether the status was written."""
        job, decision = work.job, work.decision
        version = work.metadata.resource_version
        if decision.record != work.observation.seen.record or work.attempts is not None:
            body = record.patch(decision.record, version, work.attempts)
            version = await self._writes.patch_job(work.key, body)
        if work.status_wait != status_throttle.NOW:
            return False
        if c.finished(decision.status.conditions) and _ends(work):
            self._dependents.mark_key_for_deletion(work.metadata)
        body = status.patch(job.status, decision.status, version)
        await self._writes.patch_job(work.key, body, "status")
        return True

    async def delete_job(self, work: Work) -> None:
        await self._writes.delete_job(work.key, work.metadata)

    # --- what goes ---------------------------------------------------------------------------

    async def clear(self, work: Work, launchers: Iterable[Pod]) -> bool:
        """Stop what is to stop, and release launcher pods whose end has been stored; whether the
        key of a job that has ended is gone."""
        decision, launchers = work.decision, tuple(launchers)
        over = c.finished(decision.status.conditions)
        held = [p for p in launchers if names.EVIDENCE in p.metadata.finalizers]
        expected = over and (_ends(work) or bool(held) or self._may_have_key(work))
        gone, _ = await asyncio.gather(
            self._delete_key(work, expected),
            self._all(work.key, (self._stopping(work, n) for n in decision.stop)),
        )
        if not over:
            held = [p for p in held if attempt(p.metadata) < decision.record.attempt]
        if gone:
            await self._all(work.key, (self._releasing(work.key, pod) for pod in held))
        return gone

    def _may_have_key(self, work: Work) -> bool:
        status = work.job.status
        if status.last_reconcile_time is None:
            return False  # Another controller has ended it, and what it left stays as it is.
        return self._dependents.may_have_key(work.metadata, status.completion_time, work.now)

    async def _delete_key(self, work: Work, expected: bool) -> bool:
        return not expected or await self._dependents.delete_key(
            work.metadata, names.secret(work.job.name)
        )

    async def release(self, key: Key, pods: Iterable[Pod]) -> None:
        """Release pods of a job that is gone or going."""
        held = (p for p in pods if names.EVIDENCE in p.metadata.finalizers)
        await self._all(key, (self._releasing(key, p) for p in held))

    def _stopping(self, work: Work, name: str) -> Act:
        resource, meta = to_stop(work.observation, name)
        propagation: Propagation = "Foreground" if resource is JOBS else "Background"
        return lambda: self._writes.delete_child(
            work.key, resource, meta.name, meta.uid, propagation
        )

    def _releasing(self, key: Key, pod: Pod) -> Act:
        meta = pod.metadata
        request = release_request(meta)

        async def act() -> None:
            try:
                answer = await self._client.call(request, Answer)
            except (NotFound, Conflict):
                self._freshness.deleted(key, PODS, meta.uid, meta.namespace)
                return
            self._freshness.wrote(key, PODS, answer.metadata)

        return act

    # --- what comes --------------------------------------------------------------------------

    async def free(self, work: Work) -> None:
        """Healthy workers go over into the new attempt; the agent ends their old ranks."""
        number = str(work.decision.record.attempt)
        acts: list[Act] = []
        for name in work.decision.free:
            meta = work.observation.by_name[name].metadata
            body = {"metadata": {"uid": meta.uid, "annotations": {ATTEMPT: number}}}
            request = requests.patch(PODS, meta.namespace, meta.name, body, "merge")
            acts.append(partial(self._writes.patch_child, work.key, PODS, request))
        await self._all(work.key, acts)

    async def _resize(self, work: Work, wanted: Desired) -> None:
        """First the files, then the mark on the launcher's pod: it says that they are changed, and
        has the kubelet bring them up to date at once instead of within a minute or two."""
        await self._dependents.replace_config_map(work.metadata, wanted.dependents)
        meta = work.observation.by_name[launcher_name(work.job.name)].metadata
        marked = {WORKERS: str(work.job.workers)}
        body = {"metadata": {"uid": meta.uid, "annotations": marked}}
        request = requests.patch(PODS, meta.namespace, meta.name, body, "merge")
        await self._all(work.key, [partial(self._writes.patch_child, work.key, PODS, request)])

    async def start(self, work: Work, wanted: Desired) -> None:
        """Dependents, then all missing pods and the launcher beside them."""
        decision, owner = work.decision, work.metadata
        if decision.resize:
            await self._resize(work, wanted)
        await self._dependents.provide(owner, wanted.dependents, decision.record.attempt)
        objects = wanted.children
        acts: list[Act] = [
            self._making(work, PODS, objects.workers[i]) for i in decision.start_workers
        ]
        if decision.start_launcher:
            acts.append(self._making(work, JOBS, objects.launcher_job))
        await self._all(work.key, acts)

    def _making(self, work: Work, resource: Resource, desired: dict[str, object]) -> Act:
        async def act() -> None:
            try:
                made, new = await get_or_create(self._client, resource, work.metadata, desired)
            except Invalid as error:
                raise RefusedPod(error.message, final=True) from None
            except Forbidden as error:
                final = any(text in error.message for text in _HOPELESS)
                raise RefusedPod(error.message, final) from None
            if resource is JOBS and not new and ATTEMPT not in made.annotations:
                await self._takeover.launcher_job(work.metadata)
                raise Predecessor(f"Job {made.name} was made by another controller")
            self._freshness.wrote(work.key, resource, made)

        return act

    async def take_over(self, owner: Meta) -> bool:
        """Sees to the launcher Job that another controller made; whether anything changed."""
        return await self._takeover.launcher_job(owner)

    async def _all(self, key: Key, acts: Iterable[Act]) -> None:
        """All of them, then the gravest of what went wrong."""
        done = await self._concurrency.each(acts, key.namespace)
        wrong = [error for error in done if isinstance(error, Exception)]
        if wrong:
            raise min(wrong, key=_gravity)


def to_stop(observation: Observation, name: str) -> tuple[Resource, Meta]:
    """What to delete so that `name` ends: the launcher's Job in place of its pod, since the Job
    would only make another. Never a Job that is not this MPIJob's, whatever owner a pod names."""
    thing = observation.by_name[name]
    if isinstance(thing, Job):
        return JOBS, thing.metadata
    if observation.job is not None and made_by(observation.job, thing):
        return JOBS, observation.job.metadata
    return PODS, thing.metadata


# A namespace's security rules do not change while a job waits; its quota does.
_HOPELESS = ("violates PodSecurity", "unable to validate against any security context constraint")


def _gravity(error: Exception) -> int:
    if isinstance(error, NameTaken):
        return 0
    if isinstance(error, RefusedPod):
        return 1 if error.final else 2
    return 3


def _ends(work: Work) -> bool:
    """Whether the job ends with this pass."""
    return not c.finished(work.job.status.conditions)
