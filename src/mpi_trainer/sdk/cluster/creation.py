"""A new job on the cluster, alone or with the code that it runs.

The job comes first, because the ConfigMap with its code belongs to it from its first moment and
so never outlives it; pods wait for the ConfigMap by themselves. Guarantee: where the code cannot
be stored, the job is taken back.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from mpi_trainer.api.annotations import CODE, RECORD, RESTARTS
from mpi_trainer.api.mpijob import JobStatus, MPIJob, to_wire
from mpi_trainer.decide.findings import (
    CAUSE,
    COMPLETION_TIME,
    PHASE,
    PLACEMENT,
    START_TIME,
)
from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import AlreadyExists, Forbidden, KubeError, NotFound
from mpi_trainer.kube.resources import CONFIGMAPS, MPIJOBS
from mpi_trainer.sdk.backend import Key
from mpi_trainer.sdk.cluster import code, seen
from mpi_trainer.sdk.cluster.finding import Found
from mpi_trainer.sdk.cluster.homes import Home

replace = msgspec.structs.replace
_THEIRS: Final = frozenset({RECORD, PHASE, START_TIME, COMPLETION_TIME, CAUSE, PLACEMENT})
_KUEUE: Final = "kueue.x-k8s.io/manager"
_PATIENCE: Final = 60.0
_PAUSE: Final = 0.25


async def create(home: Home, key: Key, job: MPIJob) -> MPIJob:
    body = to_wire(replace(job, status=JobStatus()))
    body.pop("status", None)
    return seen.job(await home.call(requests.submit(MPIJOBS, key.namespace, body)))


async def with_code(home: Home, key: Key, job: MPIJob, data: Mapping[str, str]) -> MPIJob:
    """`job` is as `code.with_code` made it."""
    made = await create(home, key, job)
    await _or_nothing(home, key, made, data)
    return made


async def _or_nothing(home: Home, key: Key, made: MPIJob, data: Mapping[str, str]) -> None:
    try:
        await _store(home, key, made, data)
    except BaseException:
        request = requests.delete(MPIJOBS, key.namespace, key.name, uid=made.metadata.uid)
        await asyncio.shield(asyncio.ensure_future(_quietly(home, request)))
        raise


async def _store(home: Home, key: Key, made: MPIJob, data: Mapping[str, str]) -> None:
    request = requests.create(CONFIGMAPS, key.namespace, code.config_map(made, data))
    async with asyncio.timeout(_PATIENCE):
        while True:
            try:
                await home.call(request, None)
                return
            except AlreadyExists:
                # An earlier job's of this name and content, which goes with that job.
                await asyncio.sleep(_PAUSE)


async def _quietly(home: Home, request: requests.Request) -> None:
    try:
        await home.client.call(request, None)
    except KubeError:
        return


async def shipped(home: Home, key: Key, job: MPIJob) -> dict[str, str]:
    """The code that was shipped with a job; nothing where none was."""
    name = job.metadata.annotations.get(CODE, "")
    if not name:
        return {}
    try:
        found: dict[str, Any] = await home.call(requests.get(CONFIGMAPS, key.namespace, name))
    except NotFound:
        return {}
    return dict(found.get("binaryData") or {})


async def rehearse(home: Home, found: Found) -> None:
    """Raises what the server has against this job by now, while the old one is still there.

    It is asked for another name of the same length. A quota that the old job fills is no obstacle.
    """
    job = found.job
    name = f"r{secrets.token_hex(32)}"[: len(job.name)]
    body = successor(Key(job.namespace, name), found)
    try:
        await home.call(requests.create(found.kind.resource, job.namespace, body, dry_run=True))
    except AlreadyExists:
        return
    except Forbidden as error:
        if "exceeded quota" not in error.message:
            raise


async def again(home: Home, key: Key, found: Found, shipped: Mapping[str, str]) -> MPIJob:
    body = successor(key, found)
    made = await home.call(requests.create(found.kind.resource, key.namespace, body))
    job = found.kind.job(made)
    if shipped:
        await _or_nothing(home, key, job, shipped)
    return job


def successor(key: Key, found: Found) -> dict[str, Any]:
    """The same job as a new one: what the server and controllers wrote is left behind."""
    meta: dict[str, Any] = found.data["metadata"]
    notes = {k: v for k, v in (meta.get("annotations") or {}).items() if k not in _THEIRS}
    before = notes.get(RESTARTS, "")
    notes[RESTARTS] = str(1 + (int(before) if before.isdecimal() else 0))
    return {
        "apiVersion": found.kind.resource.api_version,
        "kind": found.kind.resource.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": meta.get("labels") or {},
            "annotations": notes,
        },
        "spec": _own(found.data["spec"]),
    }


def _own(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Without Kueue's patch of a TrainJob: it puts one into every new job, and two are refused."""
    kept = [one for one in spec.get("runtimePatches") or () if one.get("manager") != _KUEUE]
    rest = {field: value for field, value in spec.items() if field != "runtimePatches"}
    return {**rest, "runtimePatches": kept} if kept else rest
