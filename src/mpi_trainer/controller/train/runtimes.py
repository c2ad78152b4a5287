"""The runtime of a job, as it was when the job began (CTL-13).

It is stored in a ConfigMap of the job's before there is a JobSet; who knows nothing of a job that
has begun reads it there, once, for it never changes. What was stored wins over what is live,
whoever stored it, also the Go trainer. Live ones are read once for all jobs that wait for them, and
never before the job was seen that wants them. What was read last is kept to work ahead with; no job
begins with it unless a fresh read says the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mpi_trainer.api import load
from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.runtime import CLUSTER, Runtime, serves
from mpi_trainer.api.trainjob import KIND, TrainJob
from mpi_trainer.controller.claims import Predecessor, check, claim
from mpi_trainer.controller.jobmemory import JobMemories
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Forbidden, NotFound
from mpi_trainer.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIGMAPS,
    TRAINING_RUNTIMES,
)
from mpi_trainer.render import snapshots
from mpi_trainer.runtime.partial import Key, Meta, Partial
from mpi_trainer.runtime.together import Together


class NoRuntime(Exception):
    """The runtime that the job names is not there; it may come."""


class BadRuntime(Exception):
    """The runtime, or what was kept of it, cannot be used; it will not mend by itself."""


class Superseded(Exception):
    """Another runtime was stored for the job before: all that was made of this one is void."""


_MANY = 256
"""live runtimes that are remembered; those of namespaces that are gone are never asked for again"""


class _Kept(Partial, frozen=True, gc=False):
    metadata: Meta = Meta()
    data: Mapping[str, str] = {}


class _Read(msgspec.Struct, frozen=True):
    data: Mapping[str, Any]
    runtime: Runtime


class _Known(msgspec.Struct):
    """The runtime of one job, and whether it is stored."""

    runtime: Runtime | None = None
    stored: bool = False


class Runtimes:
    """Remembers the runtime of every job that is under way, and whether it is stored."""

    def __init__(self, client: Client, memories: JobMemories) -> None:
        self._client = client
        self._memories = memories
        self._live = Together(self._read)
        self._latest: dict[Key, _Read] = {}

    def latest(self, job: TrainJob) -> Runtime | None:
        """As it was read last, for whichever job. `of` gives the same object if it still is so."""
        last = self._latest.get(_place(job))
        return None if last is None else last.runtime

    async def of(self, job: TrainJob, owner: Meta, begun: bool) -> Runtime:
        """`begun`: the job was acted upon before, so most likely there is a snapshot."""
        known = self._memories.of(owner.uid, _Known)
        if known.runtime is not None:
            return known.runtime
        stored = await self._stored(job, owner) if begun or known.stored else None
        if stored is not None:
            known.runtime, known.stored = stored, True
            return stored
        live = known.runtime = await self._live.get(_place(job))
        if begun:
            await self._keep(job, owner, live, known)
        return live

    async def keep(self, job: TrainJob, owner: Meta) -> None:
        """Store what `of` gave. `Superseded` where something else is stored: ask `of` again."""
        known = self._memories.of(owner.uid, _Known)
        if known.runtime is None:
            raise Superseded(snapshots.name(job.name))
        await self._keep(job, owner, known.runtime, known)

    async def _keep(self, job: TrainJob, owner: Meta, runtime: Runtime, known: _Known) -> None:
        if known.stored:
            return
        desired = snapshots.snapshot(job, runtime)
        _, fresh = await claim(self._client, CONFIGMAPS, owner, desired, KIND)
        kept = None if fresh else await self._config_map(job)
        if kept is None and not fresh:
            raise Predecessor(f"ConfigMap {snapshots.name(job.name)} was there a moment ago")
        known.stored = True
        if kept is not None and kept.data != desired["data"]:
            known.runtime = None
            raise Superseded(snapshots.name(job.name))

    async def _read(self, key: Key) -> Runtime:
        resource = TRAINING_RUNTIMES if key.namespace else CLUSTER_TRAINING_RUNTIMES
        try:
            data = await self._client.call(requests.get(resource, *key), dict[str, Any])
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
        if last is not None and last.data == data:
            return last.runtime
        if len(self._latest) >= _MANY:
            self._latest.clear()
        runtime = _runtime(data)
        self._latest[key] = _Read(data, runtime)
        return runtime

    async def _stored(self, job: TrainJob, owner: Meta) -> Runtime | None:
        name = snapshots.name(job.name)
        kept = await self._config_map(job)
        if kept is None:
            return None
        check(CONFIGMAPS, owner, kept.metadata, KIND)
        try:
            runtime = snapshots.held(kept.data, name)
        except InvalidJob as error:
            raise BadRuntime(f"ConfigMap {name} cannot be read: {error}") from None
        if not serves(runtime, job):
            raise BadRuntime(
                f"ConfigMap {name} holds {runtime.kind} {runtime.name!r}, not the runtime that "
                "the job names; delete the ConfigMap, or the job"
            )
        return runtime

    async def _config_map(self, job: TrainJob) -> _Kept | None:
        place = (CONFIGMAPS, job.namespace, snapshots.name(job.name))
        try:
            return await self._client.call(requests.get(*place), _Kept)
        except NotFound:
            return None


def _place(job: TrainJob) -> Key:
    """Where its runtime is; in no namespace: the cluster's own."""
    ref = job.spec.runtime_ref
    return Key("" if (ref.kind or CLUSTER) == CLUSTER else job.namespace, ref.name)


def _runtime(data: Mapping[str, Any]) -> Runtime:
    found = load.runtime(data)
    if found.errors or not isinstance(found.value, Runtime):
        raise BadRuntime("; ".join(f"runtime: {error}" for error in found.errors))
    return found.value
