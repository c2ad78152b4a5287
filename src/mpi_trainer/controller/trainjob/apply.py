"""Carrying out a decision about a TrainJob. The only place that changes anything for TrainJobs.

The order is fixed: annotations, status, snapshot and dependents, JobSet; of a job that has ended,
its key last. A controller that dies between two steps leaves a state from which the next pass goes
on. Every write is guarded: the job's by its resourceVersion, the JobSet's by the uid that was seen,
a creation by its fixed name.
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
from mpi_trainer.controller.trainjob.desired import Desired
from mpi_trainer.controller.trainjob.runtimes import Runtimes, Superseded
from mpi_trainer.controller.write_concurrency import WriteConcurrency
from mpi_trainer.decide.trainjob import status_annotations
from mpi_trainer.decide.trainjob.decision import TrainJobDecision
from mpi_trainer.decide.trainjob.observed import ObservedJobSet
from mpi_trainer.decide.trainjob.status import finished
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Forbidden, Invalid
from mpi_trainer.kube.resources import JOBSETS, TRAINJOBS, Resource
from mpi_trainer.render import names
from mpi_trainer.render.trainjob.jobsets import made_from
from mpi_trainer.runtime.freshness import Freshness
from mpi_trainer.runtime.partial import Key, Meta


class Work(msgspec.Struct, frozen=True):
    """What was observed of a job and what is to be done. `metadata` is the job's as it was
    observed."""

    key: Key
    job: TrainJob
    metadata: Meta
    job_set: ObservedJobSet | None
    decision: TrainJobDecision
    now: datetime


class RefusedJobSet(Exception):
    """The API server will not take the JobSet, however often it is asked."""


class Writer:
    def __init__(
        self,
        client: Client,
        runtimes: Runtimes,
        dependents: Dependents,
        freshness: Freshness[Key, Resource],
        concurrency: WriteConcurrency,
    ) -> None:
        self._client = client
        self._runtimes = runtimes
        self._dependents = dependents
        self._freshness = freshness
        self._concurrency = concurrency
        self._writes = GuardedWrites(client, TRAINJOBS, freshness, concurrency)

    async def store(self, work: Work) -> bool:
        """Annotations and status; whether any of them was written."""
        version = work.metadata.resource_version
        old = status_annotations.read(work.job.metadata.annotations)
        notes = status_annotations.changes(old, work.decision.annotations)
        if notes:
            body: dict[str, Any] = {"resourceVersion": version, "annotations": notes}
            version = await self._writes.patch_job(work.key, {"metadata": body})
        if work.decision.status == work.job.status:
            return bool(notes)
        if finished(work.decision.status) and not finished(work.job.status):
            self._dependents.mark_key_for_deletion(work.metadata)
        body = status.patch(work.job.status, work.decision.status, version)
        await self._writes.patch_job(work.key, body, "status")
        return True

    async def delete_key(self, work: Work) -> bool:
        """Of a job that has ended, once that is written; whether it is gone."""
        if not finished(work.decision.status):
            return True
        ended = status_annotations.to_time(work.decision.annotations.completion_time)
        expected = self._dependents.may_have_key(work.metadata, ended, work.now)
        if finished(work.job.status) and not expected:
            return True
        return await self._dependents.delete_key(work.metadata, names.ssh_secret(work.job.name))

    async def delete_job(self, work: Work) -> None:
        await self._writes.delete_job(work.key, work.metadata)

    async def set_suspended(self, work: Work, wanted: Desired | None, suspend: bool) -> None:
        """Suspend the JobSet, or resume it."""
        if wanted is not None and not suspend:
            await self._provide_scripts(work, wanted)
        await self._patch_job_set(work, {"spec": {"suspend": suspend}})

    async def renew(self, work: Work, wanted: Desired) -> None:
        """Make a suspended JobSet what it should be, and resume it.

        JobSet lets little be changed; where it refuses, the JobSet is deleted, and the next pass
        that misses it creates another.
        """
        await self._provide_scripts(work, wanted)
        stored = await self._runtimes.store(work.job, work.metadata)
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
        await self._writes.delete_child(
            work.key, JOBSETS, work.key.name, work.job_set.uid, "Foreground"
        )

    async def create(self, work: Work, wanted: Desired) -> None:
        """Snapshot and dependents, then the JobSet."""
        owner = work.metadata
        stored = await self._provide_all(work, wanted)
        desired = made_from(wanted.children.job_set, stored)
        try:
            made, _ = await self._concurrency.send(
                lambda: get_or_create(self._client, JOBSETS, owner, desired, KIND),
                work.key.namespace,
            )
        except Invalid as error:
            raise RefusedJobSet(error.message) from None
        self._freshness.wrote(work.key, JOBSETS, made)

    async def _provide_all(self, work: Work, wanted: Desired) -> str:
        """All at once, the largest first: a pass that finds a part of it creates the rest. The mark
        of the snapshot."""
        owner = work.metadata
        provided, stored = await asyncio.gather(
            self._provide(owner, wanted),
            self._runtimes.store(work.job, owner),
            return_exceptions=True,
        )
        if isinstance(stored, Superseded):
            # A key of the wrong runtime may lack a part; what else there is will be replaced.
            await self._dependents.delete_key(owner, names.ssh_secret(work.job.name))
            raise stored
        if provided is not None:
            raise provided
        if isinstance(stored, BaseException):
            raise stored
        return stored

    async def _provide(self, owner: Meta, wanted: Desired) -> None:
        if wanted.dependents is not None:
            await self._dependents.provide(owner, wanted.dependents, int(wanted.rendered, 16))

    async def _provide_scripts(self, work: Work, wanted: Desired) -> None:
        if wanted.dependents is not None and wanted.dependents.scripts:
            await self._dependents.provide_scripts(work.metadata)

    async def _patch_job_set(self, work: Work, body: dict[str, Any]) -> None:
        assert work.job_set is not None
        guarded = {**(body.get("metadata") or {}), "uid": work.job_set.uid}
        target = (JOBSETS, work.key.namespace, work.key.name)
        request = requests.patch(*target, {**body, "metadata": guarded}, "merge")
        await self._writes.patch_child(work.key, JOBSETS, request)
