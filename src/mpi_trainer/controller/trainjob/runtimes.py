"""The runtime of a job, as it was when the job began (CTL-13).

It is stored in a ConfigMap of the job's before there is a JobSet, and the JobSet carries the mark
of what was stored. Users may make ConfigMaps, and must not choose what their pods are made from
that way: a snapshot is believed only where the JobSet's mark says so. As long as there is no JobSet
nothing was made of a snapshot; one that differs from what is live goes. A JobSet without a mark is
the Go trainer's or of an earlier version, and its snapshot is taken as it stands.

Live runtimes are read once for all jobs that wait for them, and never before the job was seen that
wants them. What was read last is kept so that the same text is not decoded twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds.runtime import CLUSTER, Runtime, serves
from mpi_trainer.api.kinds.trainjob import KIND, TrainJob
from mpi_trainer.api.validation import size
from mpi_trainer.api.yaml import load, typed
from mpi_trainer.controller.children import Predecessor, check_owner, get_or_create
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Conflict, Forbidden, NotFound
from mpi_trainer.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIGMAPS,
    TRAINING_RUNTIMES,
)
from mpi_trainer.render import names
from mpi_trainer.render.trainjob import snapshots
from mpi_trainer.runtime.coalesce import CoalescedReads
from mpi_trainer.runtime.off_loop import OffLoop
from mpi_trainer.runtime.partial import Key, Meta, Partial


class NoRuntime(Exception):
    """The runtime that the job names is not there; it may come."""


class BadRuntime(Exception):
    """The runtime, or what was kept of it, cannot be used; it will not mend by itself."""


class Superseded(Exception):
    """Another snapshot was in the way, and is gone: what was made beside it may be void too."""


_MANY = 256
"""live runtimes that are remembered; those of namespaces that are gone are never asked for again"""


class _StoredSnapshot(Partial, frozen=True, gc=False):
    metadata: Meta = Meta()
    data: Mapping[str, str] = {}
    immutable: bool = False


class _DecodedRuntime(msgspec.Struct, frozen=True):
    data: Mapping[str, Any]
    runtime: Runtime


class _JobRuntime(msgspec.Struct):
    """The runtime of one job, and the mark of what is stored of it; empty: nothing is."""

    runtime: Runtime | None = None
    mark: str = ""


class Runtimes:
    """Remembers the runtime of every job that is under way, and what is stored of it."""

    def __init__(self, client: Client, memories: JobMemories) -> None:
        self._client = client
        self._memories = memories
        self._live = CoalescedReads(self._read)
        self._latest: dict[Key, _DecodedRuntime] = {}
        self._long = OffLoop()

    async def of_job(self, job: TrainJob, owner: Meta, made_from: str | None) -> Runtime:
        """`made_from` is the mark of the job's JobSet, empty if it has none; None: no JobSet."""
        known = self._memories.part(owner.uid, _JobRuntime)
        if known.runtime is not None:
            return known.runtime
        if made_from is not None:
            await self._recall(job, owner, made_from, known)
            if known.runtime is not None:
                return known.runtime
        live = await self._live.get(_runtime_key(job))
        if made_from and made_from != snapshots.mark(snapshots.snapshot(job, live)["data"]):
            raise BadRuntime(
                f"ConfigMap {names.runtime_snapshot(job.name)} is not what the job began with, and "
                "the runtime has changed since; delete the job, and make it again"
            )
        known.runtime = live
        if made_from is not None:
            await self._store(job, owner, live, known)
        return live

    async def store(self, job: TrainJob, owner: Meta) -> str:
        """Store what `of_job` gave, before a JobSet is made of it; the mark of what is stored.

        `Superseded` where something else was stored, which goes: begin again.
        """
        known = self._memories.part(owner.uid, _JobRuntime)
        if known.runtime is None:
            raise Superseded(names.runtime_snapshot(job.name))
        await self._store(job, owner, known.runtime, known)
        return known.mark

    async def _store(
        self, job: TrainJob, owner: Meta, runtime: Runtime, known: _JobRuntime
    ) -> None:
        if known.mark:
            return
        desired = snapshots.snapshot(job, runtime)
        _, fresh = await get_or_create(self._client, CONFIGMAPS, owner, desired, KIND)
        if not fresh:
            kept = await self._config_map(job)
            if kept is None:
                raise Predecessor(
                    f"ConfigMap {names.runtime_snapshot(job.name)} was there a moment ago"
                )
            if kept.data != desired["data"] or not kept.immutable:
                await self._remove(kept.metadata)
                raise Superseded(names.runtime_snapshot(job.name))
        known.mark = snapshots.mark(desired["data"])

    async def _remove(self, meta: Meta) -> None:
        request = requests.delete(CONFIGMAPS, meta.namespace, meta.name, uid=meta.uid)
        try:
            await self._client.call(request, None)
        except (NotFound, Conflict):
            return

    async def _read(self, key: Key) -> Runtime:
        resource = TRAINING_RUNTIMES if key.namespace else CLUSTER_TRAINING_RUNTIMES
        try:
            body = await self._client.fetch(requests.get(resource, *key))
        except Forbidden as error:
            raise NoRuntime(
                f"spec.runtimeRef: this controller may not read it ({error.message}); name a "
                "TrainingRuntime of the job's namespace, or have the right granted"
            ) from None
        except NotFound:
            where = f" in namespace {key.namespace}" if key.namespace else ""
            raise NoRuntime(
                f"spec.runtimeRef.name: there is no {resource.kind} {key.name!r}{where}; "
                "create it, or delete the job and name another"
            ) from None
        last = self._latest.get(key)
        found = await self._long.run(key.namespace, len(body), _read, body, last)
        if len(self._latest) >= _MANY:
            self._latest.clear()
        self._latest[key] = found
        return found.runtime

    async def _recall(self, job: TrainJob, owner: Meta, made_from: str, known: _JobRuntime) -> None:
        """What is stored, if it is what the JobSet was made from."""
        name = names.runtime_snapshot(job.name)
        kept = await self._config_map(job)
        if kept is None:
            return
        check_owner(CONFIGMAPS, owner, kept.metadata, KIND)
        mark = snapshots.mark(kept.data)
        if made_from not in ("", mark):
            return
        try:
            long = len(kept.data.get(snapshots.KEY, ""))
            runtime = await self._long.run(
                owner.namespace, long, snapshots.runtime_in, kept.data, name
            )
        except InvalidJob as error:
            raise BadRuntime(f"ConfigMap {name} cannot be read: {error}") from None
        if not serves(runtime, job):
            raise BadRuntime(
                f"ConfigMap {name} holds {runtime.kind} {runtime.name!r}, not the runtime that "
                "the job names; delete the ConfigMap, or the job"
            )
        known.runtime, known.mark = runtime, mark

    async def _config_map(self, job: TrainJob) -> _StoredSnapshot | None:
        target = (CONFIGMAPS, job.namespace, names.runtime_snapshot(job.name))
        try:
            return await self._client.call(requests.get(*target), _StoredSnapshot)
        except NotFound:
            return None


def _runtime_key(job: TrainJob) -> Key:
    """Where its runtime is; in no namespace: the cluster's own."""
    ref = job.spec.runtime_ref
    return Key("" if (ref.kind or CLUSTER) == CLUSTER else job.namespace, ref.name)


class _RuntimeSpec(Partial, frozen=True, gc=False):
    spec: msgspec.Raw = msgspec.Raw(b"{}")


def _read(body: bytes, last: _DecodedRuntime | None) -> _DecodedRuntime:
    """The runtime that the API server has answered with; the `last` one if it still is that."""
    try:
        wrong = size.text_errors(bytes(typed.decode(body, _RuntimeSpec).spec))
        data = {} if wrong else typed.decode(body, dict[str, Any])
    except msgspec.MsgspecError as error:
        raise BadRuntime(f"runtime: it cannot be read: {error}") from None
    if wrong:
        raise BadRuntime(f"runtime: {wrong[0]}")
    if last is not None and last.data == data:
        return last
    return _DecodedRuntime(data, _runtime(data))


def _runtime(data: Mapping[str, Any]) -> Runtime:
    found = load.runtime(data)
    if found.errors or not isinstance(found.value, Runtime):
        raise BadRuntime("; ".join(f"runtime: {error}" for error in found.errors))
    return found.value
