"""The runtime of a job, as it was when the job began (CTL-13).

The first look stores it in a ConfigMap of the job's, and every later one reads it there: once, for
it never changes. What was stored wins over what is live, whoever stored it, also the Go trainer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mpi_trainer.api import documents, load
from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.runtime import CLUSTER, Runtime, serves
from mpi_trainer.api.trainjob import KIND, TrainJob
from mpi_trainer.controller.claims import check, claim
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Forbidden, NotFound
from mpi_trainer.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIGMAPS,
    TRAINING_RUNTIMES,
)
from mpi_trainer.render import snapshots
from mpi_trainer.runtime.partial import Meta, Partial


class NoRuntime(Exception):
    """The runtime that the job names is not there; it may come."""


class BadRuntime(Exception):
    """The runtime, or what was kept of it, cannot be used; it will not mend by itself."""


class _Kept(Partial, frozen=True, gc=False):
    metadata: Meta = Meta()
    data: Mapping[str, str] = {}


class Runtimes:
    """Remembers the runtime of every job that is under way."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, Runtime] = {}

    def forget(self, uid: str) -> None:
        self._known.pop(uid, None)

    async def of(self, job: TrainJob, owner: Meta, begun: bool) -> Runtime:
        """`begun`: there is a JobSet, so most likely a snapshot too."""
        known = self._known.get(owner.uid)
        if known is None:
            known = (await self._stored(job, owner)) if begun else None
            known = known or await self._live(job, owner)
            self._known[owner.uid] = known
        return known

    async def _live(self, job: TrainJob, owner: Meta) -> Runtime:
        ref = job.spec.runtime_ref
        cluster = (ref.kind or CLUSTER) == CLUSTER
        resource = CLUSTER_TRAINING_RUNTIMES if cluster else TRAINING_RUNTIMES
        place = "" if cluster else job.namespace
        try:
            data = await self._client.call(requests.get(resource, place, ref.name), dict[str, Any])
        except Forbidden as error:
            raise NoRuntime(
                f"spec.runtimeRef: this controller may not read it ({error.message}); name a "
                "TrainingRuntime of the job's namespace, or have the right granted"
            ) from None
        except NotFound:
            where = "" if cluster else f" in namespace {place}"
            raise NoRuntime(
                f"spec.runtimeRef.name: there is no {resource.kind} {ref.name!r}{where}; "
                "create it, or delete the job and name another"
            ) from None
        runtime = _runtime(data)
        _, fresh = await claim(
            self._client, CONFIGMAPS, owner, snapshots.snapshot(job, runtime), KIND
        )
        stored = None if fresh else await self._stored(job, owner)
        return stored or runtime

    async def _stored(self, job: TrainJob, owner: Meta) -> Runtime | None:
        name = snapshots.name(job.name)
        try:
            kept = await self._client.call(requests.get(CONFIGMAPS, job.namespace, name), _Kept)
        except NotFound:
            return None
        check(CONFIGMAPS, owner, kept.metadata, KIND)
        runtime = _runtime(_parsed(kept.data.get(snapshots.KEY, ""), name))
        if not serves(runtime, job):
            raise BadRuntime(
                f"ConfigMap {name} holds {runtime.kind} {runtime.name!r}, not the runtime that "
                "the job names; delete the ConfigMap, or the job"
            )
        return runtime


def _parsed(text: str, name: str) -> Mapping[str, Any]:
    try:
        data = msgspec.json.decode(text)
    except msgspec.DecodeError:
        try:
            data = documents.parse(text, name)[0].data
        except InvalidJob as error:
            raise BadRuntime(f"ConfigMap {name} cannot be read: {error}") from None
    return data if isinstance(data, dict) else {}


def _runtime(data: Mapping[str, Any]) -> Runtime:
    found = load.runtime(data)
    if found.errors or not isinstance(found.value, Runtime):
        raise BadRuntime("; ".join(f"runtime: {error}" for error in found.errors))
    return found.value
