"""A new job on the cluster, alone or with the code that it runs.

The job comes first, because the ConfigMap with its code belongs to it from its first moment and
so never outlives it; pods wait for the ConfigMap by themselves. Guarantee: where the code cannot
be stored, the job is taken back.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Mapping
from copy import deepcopy
from functools import reduce
from typing import Any, Final

import msgspec

from mpi_trainer.api.kinds.annotations import CODE, ONE_RUN, RESTARTS
from mpi_trainer.api.kinds.managers import KUEUE
from mpi_trainer.api.kinds.mpijob import MPIJob, MPIJobStatus, to_wire
from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import (
    AlreadyExists,
    ApiError,
    Forbidden,
    KubeError,
    NotFound,
    ServerFault,
    Unreachable,
)
from mpi_trainer.kube.resources import CONFIGMAPS, MPIJOBS, SECRETS
from mpi_trainer.sdk.backends.backend import JobView, Key
from mpi_trainer.sdk.backends.cluster import code, namespace_limits
from mpi_trainer.sdk.backends.cluster.connections import Home
from mpi_trainer.sdk.backends.cluster.find import FoundJob
from mpi_trainer.sdk.backends.cluster.kinds import MPIJOB, Kind

replace = msgspec.structs.replace
_PATIENCE: Final = 60.0
_PAUSE: Final = 0.25
_REFUSALS: Final = (400, 403, 422)


async def demanded(home: Home, namespace: str) -> namespace_limits.Demands:
    """What the namespace demands of containers, as far as the caller may see it."""
    asked = namespace_limits.questions(namespace)
    return namespace_limits.demands(*await asyncio.gather(*(_answer(home, one) for one in asked)))


async def _answer(home: Home, request: requests.Request) -> dict[str, Any]:
    """Asked once: whether the server is there at all, the job itself will tell."""
    try:
        found: dict[str, Any] = await home.client.call(replace(request, tries=1), dict[str, Any])
        return found
    except KubeError:
        return {}


async def create(home: Home, key: Key, job: MPIJob, *, dry_run: bool = False) -> JobView:
    body = to_wire(replace(job, status=MPIJobStatus()))
    body.pop("status", None)
    request = requests.submit(MPIJOBS, key.namespace, body, dry_run=dry_run)
    return MPIJOB.view(await home.call(request))


async def attach(home: Home, namespace: str, body: Mapping[str, Any]) -> bool:
    """Makes a ConfigMap or Secret of a job file; whether it was not there before."""
    resource = {CONFIGMAPS.kind: CONFIGMAPS, SECRETS.kind: SECRETS}[body["kind"]]
    try:
        await home.call(requests.create(resource, namespace, body), None)
    except AlreadyExists:
        return False
    return True


async def refusals(dry_run: Awaitable[object]) -> tuple[str, ...]:
    """What the server has against an object that it is asked about by a dry run."""
    try:
        await dry_run
    except AlreadyExists:
        return ()
    except ApiError as error:
        if error.code not in _REFUSALS:
            raise
        from mpi_trainer.diagnose.refusals import lines

        return lines(error.message, error.details.get("causes") or ())
    return ()


async def with_code(home: Home, key: Key, job: MPIJob, data: Mapping[str, str]) -> JobView:
    """`job` is as `code.with_code` made it."""
    made = await create(home, key, job)
    await _or_nothing(home, key, made, data)
    return made


async def _or_nothing(home: Home, key: Key, made: JobView, data: Mapping[str, str]) -> None:
    try:
        await _store(home, key, made, data)
    except BaseException:
        request = requests.delete(MPIJOBS, key.namespace, key.name, uid=made.uid)
        await asyncio.shield(asyncio.ensure_future(_quietly(home, request)))
        raise


async def _store(home: Home, key: Key, made: JobView, data: Mapping[str, str]) -> None:
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


async def shipped(home: Home, key: Key, annotations: Mapping[str, str]) -> dict[str, str]:
    """The code that was shipped with a job; nothing where none was."""
    name = annotations.get(CODE, "")
    if not name:
        return {}
    try:
        found: dict[str, Any] = await home.call(requests.get(CONFIGMAPS, key.namespace, name))
    except NotFound:
        return {}
    return dict(found.get("binaryData") or {})


async def rehearse(home: Home, found: FoundJob) -> None:
    """Raises what the server has against this job by now, while the old one is still there.

    It is asked for another name of the same length. A quota that the old job fills is no obstacle.
    """
    job = found.view
    name = f"r{secrets.token_hex(32)}"[: len(job.name)]
    body = successor(Key(job.namespace, name), found)
    try:
        await home.call(requests.create(found.kind.resource, job.namespace, body, dry_run=True))
    except AlreadyExists:
        return
    except Forbidden as error:
        if "exceeded quota" not in error.message:
            raise


async def again(home: Home, key: Key, found: FoundJob, shipped: Mapping[str, str]) -> JobView:
    """The job, which is gone by now, once more; asked for until there is an answer."""
    body = successor(key, found)
    async with asyncio.timeout(_PATIENCE):
        while (made := await _made_again(home, key, found, body)) is None:  # noqa: ASYNC110
            await asyncio.sleep(_PAUSE)
    job = found.kind.view(made)
    if shipped:
        await _store(home, key, job, shipped)
    return job


async def _made_again(
    home: Home, key: Key, found: FoundJob, body: dict[str, Any]
) -> dict[str, Any] | None:
    """None where nobody knows yet whether it was made."""
    resource = found.kind.resource
    try:
        made: dict[str, Any] = await home.call(requests.create(resource, key.namespace, body))
    except (Unreachable, ServerFault):
        return None
    except AlreadyExists:
        made = await home.call(requests.get(resource, key.namespace, key.name))
        notes = made["metadata"].get("annotations") or {}
        if notes.get(RESTARTS) != body["metadata"]["annotations"][RESTARTS]:
            raise
    return made


def successor(key: Key, found: FoundJob) -> dict[str, Any]:
    """The same job as a new one: what the server and controllers wrote is left behind."""
    meta: dict[str, Any] = found.data["metadata"]
    notes = {k: v for k, v in (meta.get("annotations") or {}).items() if k not in ONE_RUN}
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
        "spec": _own(found.kind, found.data["spec"]),
    }


def _own(kind: Kind, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Not suspended, and without Kueue's patch of a TrainJob: it puts one into every new job, and
    two are refused."""
    made = deepcopy(dict(spec))
    kept = [one for one in made.pop("runtimePatches", None) or () if one.get("manager") != KUEUE]
    if kept:
        made["runtimePatches"] = kept
    _, *above, field = kind.suspend
    place = reduce(lambda found, name: found.get(name) or {}, above, made)
    place.pop(field, None)
    return made
