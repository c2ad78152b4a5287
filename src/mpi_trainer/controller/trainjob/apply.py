"""Carrying out a step of a TrainJob. The only place that changes anything for TrainJobs.

The order is fixed: annotations, status, snapshot and furniture, JobSet; of a job that has ended,
its key last. Whoever dies between two steps leaves a state from which the next look goes on. Every
write is guarded: the job's by its resourceVersion, the JobSet's by the uid that was seen, a making
by its fixed name.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import msgspec

from mpi_trainer.api.kinds.trainjob import KIND, TrainJob
from mpi_trainer.controller import status
from mpi_trainer.controller.children import get_or_create
from mpi_trainer.controller.dependents import Dependents
from mpi_trainer.controller.guarded_writes import GuardedWrites
from mpi_trainer.controller.objects import Answer
from mpi_trainer.controller.trainjob.desired import Desired
from mpi_trainer.controller.trainjob.runtimes import Runtimes, Superseded
from mpi_trainer.controller.write_concurrency import WriteConcurrency
from mpi_trainer.decide.trainjob import status_annotations
from mpi_trainer.decide.trainjob.decision import TrainJobDecision
from mpi_trainer.decide.trainjob.observed import ObservedJobSet
from mpi_trainer.decide.trainjob.status import finished
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Conflict, Forbidden, Invalid, NotFound
from mpi_trainer.kube.resources import JOBSETS, TRAINJOBS, Resource
from mpi_trainer.render.trainjob.children import secret_name
from mpi_trainer.render.trainjob.jobsets import made_from
from mpi_trainer.runtime.freshness import Freshness
from mpi_trainer.runtime.partial import Key, Meta


class Work(msgspec.Struct, frozen=True):
    """One look and what came of it. `metadata` is the job's as it was looked at."""

    key: Key
    job: TrainJob
    metadata: Meta
    job_set: ObservedJobSet | None
    step: TrainJobDecision
    now: datetime


class Refused(Exception):
    """The API server will not take the JobSet, however often it is asked."""


class Writer:
    def __init__(
        self,
        client: Client,
        runtimes: Runtimes,
        furniture: Dependents,
        freshness: Freshness[Key, Resource],
        pace: WriteConcurrency,
    ) -> None:
        self._client = client
        self._runtimes = runtimes
        self._furniture = furniture
        self._freshness = freshness
        self._pace = pace
        self._job = GuardedWrites(client, TRAINJOBS, freshness, pace)

    async def store(self, work: Work) -> bool:
        """Findings and status; whether the status or the phase was written."""
        version = work.metadata.resource_version
        old = status_annotations.read(work.job.metadata.annotations)
        notes = status_annotations.changes(old, work.step.annotations)
        if notes:
            body: dict[str, Any] = {"resourceVersion": version, "annotations": notes}
            version = await self._job.patch(work.key, {"metadata": body})
        if work.step.status == work.job.status:
            return bool(notes)
        if finished(work.step.status) and not finished(work.job.status):
            self._furniture.owe_key(work.metadata)
        body = status.patch(work.job.status, work.step.status, version)
        await self._job.patch(work.key, body, "status")
        return True

    async def take_key(self, work: Work) -> bool:
        """Of a job that has ended, once that is told; whether it is gone."""
        if not finished(work.step.status):
            return True
        ended = status_annotations.to_time(work.step.annotations.completion_time)
        owed = self._furniture.owes_key(work.metadata, ended, work.now)
        if finished(work.job.status) and not owed:
            return True
        return await self._furniture.take_key(work.metadata, secret_name(work.job.name))

    async def delete_job(self, work: Work) -> None:
        await self._job.delete(work.key, work.metadata)

    async def rest(self, work: Work, wanted: Desired | None, suspend: bool) -> None:
        """Suspend the JobSet, or let it go on."""
        if wanted is not None and not suspend:
            await self._give_scripts(work, wanted)
        await self._patch_job_set(work, {"spec": {"suspend": suspend}})

    async def renew(self, work: Work, wanted: Desired) -> None:
        """Make a suspended JobSet what it should be and let it go on.

        JobSet lets little be changed; where it refuses, the JobSet goes, and the next look that
        misses it makes another.
        """
        await self._give_scripts(work, wanted)
        stored = await self._runtimes.keep(work.job, work.metadata)
        made = made_from(wanted.children.job_set, stored)
        marks = {k: made["metadata"].get(k) for k in ("labels", "annotations")}
        body = {"metadata": {k: v for k, v in marks.items() if v}, "spec": made["spec"]}
        try:
            await self._patch_job_set(work, body)
        except (Invalid, Forbidden):
            await self.remove(work)

    async def remove(self, work: Work) -> None:
        """In the foreground: its Jobs go first, so another of its name meets none of them."""
        assert work.job_set is not None
        place, uid = (work.key.namespace, work.key.name), work.job_set.uid
        request = requests.delete(JOBSETS, *place, uid=uid, propagation="Foreground")
        try:
            answer = await self._client.call(request, Answer)
        except (NotFound, Conflict):
            self._freshness.deleted(work.key, JOBSETS, uid, work.key.namespace)
            return
        if answer.kind == JOBSETS.kind and answer.metadata.deletion_timestamp is not None:
            self._freshness.wrote(work.key, JOBSETS, answer.metadata)
        else:
            self._freshness.deleted(work.key, JOBSETS, uid, work.key.namespace)

    async def make(self, work: Work, wanted: Desired) -> None:
        """Snapshot and furniture, then the JobSet."""
        owner = work.metadata
        stored = await self._furnish(work, wanted)
        desired = made_from(wanted.children.job_set, stored)
        try:
            made, _ = await self._pace.send(
                lambda: get_or_create(self._client, JOBSETS, owner, desired, KIND),
                work.key.namespace,
            )
        except Invalid as error:
            raise Refused(error.message) from None
        self._freshness.wrote(work.key, JOBSETS, made)

    async def _furnish(self, work: Work, wanted: Desired) -> str:
        """All at once, the largest first: a look that finds a part of it makes the rest. The mark
        of the snapshot."""
        owner = work.metadata
        furnished, stored = await asyncio.gather(
            self._provide(owner, wanted),
            self._runtimes.keep(work.job, owner),
            return_exceptions=True,
        )
        if isinstance(stored, Superseded):
            # A key of the wrong runtime may lack a part; what else there is will be replaced.
            await self._furniture.take_key(owner, secret_name(work.job.name))
            raise stored
        if furnished is not None:
            raise furnished
        if isinstance(stored, BaseException):
            raise stored
        return stored

    async def _provide(self, owner: Meta, wanted: Desired) -> None:
        if wanted.pieces is not None:
            await self._furniture.provide(owner, wanted.pieces, int(wanted.rendered, 16))

    async def _give_scripts(self, work: Work, wanted: Desired) -> None:
        if wanted.pieces is not None and wanted.pieces.scripts:
            await self._furniture.give_scripts(work.metadata)

    async def _patch_job_set(self, work: Work, body: dict[str, Any]) -> None:
        assert work.job_set is not None
        guarded = {**(body.get("metadata") or {}), "uid": work.job_set.uid}
        place = (JOBSETS, work.key.namespace, work.key.name)
        request = requests.patch(*place, {**body, "metadata": guarded}, "merge")
        answer = await self._client.call(request, Answer)
        self._freshness.wrote(work.key, JOBSETS, answer.metadata)
