"""Jobs of a cluster made, made again and deleted.

A job comes before the ConfigMap with its code, which belongs to it from its first moment and so
never outlives it; pods wait for the ConfigMap by themselves. Guarantee: where the code cannot be
stored, the job is taken back; a later job of the same name is never deleted.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Mapping
from contextlib import aclosing, suppress
from copy import deepcopy
from functools import reduce
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import msgspec

from mpi_trainer.api.kinds import kueue, mpijob, trainjob
from mpi_trainer.api.kinds.annotations import CODE, ONE_RUN, RESTARTS, whole_number
from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.api.kinds.managers import KUEUE
from mpi_trainer.api.kinds.mpijob import MPIJob, MPIJobStatus
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    KubeError,
    NotFound,
    ServerFault,
    Unreachable,
)
from mpi_trainer.kube.resources import (
    CONFIGMAPS,
    MPIJOBS,
    SECRETS,
    Resource,
)
from mpi_trainer.sdk.backends.backend import JobView, Key
from mpi_trainer.sdk.backends.cluster import choices, code, namespace_limits
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.defaults import with_ranks
from mpi_trainer.sdk.backends.cluster.details import workloads_of
from mpi_trainer.sdk.backends.cluster.errors import job_changed
from mpi_trainer.sdk.backends.cluster.find import FoundJob, find
from mpi_trainer.sdk.backends.cluster.kinds import MPIJOB, TRAINJOB, Kind
from mpi_trainer.sdk.errors import JobError

replace = msgspec.structs.replace
_PATIENCE: Final = 60.0
_PAUSE: Final = 0.25
_LAST_LOOK: Final = 5.0
_REFUSALS: Final = (400, 403, 422)


async def demanded(server: ApiServer, namespace: str) -> namespace_limits.Demands:
    """What the namespace demands of containers, as far as the caller may see it."""

    async def read() -> namespace_limits.Demands:
        asked = namespace_limits.questions(namespace)
        answers = await asyncio.gather(*(_answer(server, one) for one in asked))
        return namespace_limits.demands(*answers)

    return await server.demands.read(namespace, read)


async def _answer(server: ApiServer, request: requests.Request) -> dict[str, Any]:
    """Asked once: whether the server is there at all, the job itself will tell."""
    try:
        found: dict[str, Any] = await server.client.call(replace(request, tries=1), dict[str, Any])
        return found
    except KubeError:
        return {}


async def create(server: ApiServer, key: Key, job: MPIJob, *, dry_run: bool = False) -> JobView:
    body = mpijob.to_wire(replace(job, status=MPIJobStatus()))
    return await _submit(server, key, MPIJOB, body, dry_run)


async def create_trainjob(
    server: ApiServer, key: Key, job: TrainJob, *, dry_run: bool = False
) -> JobView:
    """With the ranks of its runtime where we may read that; whether it is there at all is the
    server's to say."""
    with suppress(KubeError):
        runtime = await choices.runtime(server, key.namespace, job.spec.runtime_ref)
        job = with_ranks(job, runtime)
    return await _submit(server, key, TRAINJOB, trainjob.to_wire(job), dry_run)


async def _submit(
    server: ApiServer, key: Key, kind: Kind, body: dict[str, Any], dry_run: bool
) -> JobView:
    body.pop("status", None)
    body["metadata"]["namespace"] = key.namespace
    request = requests.submit(kind.resource, key.namespace, body, dry_run=dry_run)
    return kind.view(await server.call(request))


async def attach(server: ApiServer, namespace: str, body: Mapping[str, Any]) -> bool:
    """Makes a ConfigMap or Secret of a job file; whether it was not there before."""
    resource = {CONFIGMAPS.kind: CONFIGMAPS, SECRETS.kind: SECRETS}[body["kind"]]
    try:
        await server.call(requests.create(resource, namespace, body), None)
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


async def tried(
    server: ApiServer, resource: Resource, namespace: str, body: Mapping[str, Any]
) -> tuple[Mapping[str, Any] | None, tuple[str, ...]]:
    """What a dry run makes of an object, or why it makes nothing. Of one that is there already
    neither: admission has nothing against it."""
    found: list[Mapping[str, Any]] = []

    async def asked() -> None:
        request = requests.submit(resource, namespace, dict(body), dry_run=True)
        found.append(await server.call(request, dict[str, Any]))

    refused = await refusals(asked())
    return (found[0] if found else None), refused


async def create_with_code(
    server: ApiServer, key: Key, job: MPIJob, data: Mapping[str, str]
) -> JobView:
    """`job` is as `code.with_code` made it."""
    made = await create(server, key, job)
    await _store_or_delete(server, key, made, data)
    return made


async def _store_or_delete(
    server: ApiServer, key: Key, made: JobView, data: Mapping[str, str]
) -> None:
    try:
        await _store(server, key, made, data)
    except BaseException:
        request = requests.delete(MPIJOBS, key.namespace, key.name, uid=made.uid)
        await asyncio.shield(asyncio.ensure_future(_quietly(server, request)))
        raise


async def _store(server: ApiServer, key: Key, made: JobView, data: Mapping[str, str]) -> None:
    request = requests.create(CONFIGMAPS, key.namespace, code.config_map(made, data))
    async with asyncio.timeout(_PATIENCE):
        while True:
            try:
                await server.call(request, None)
                return
            except AlreadyExists:
                # An earlier job's of this name and content, which goes with that job.
                await asyncio.sleep(_PAUSE)


async def _quietly(server: ApiServer, request: requests.Request) -> None:
    try:
        await server.client.call(request, None)
    except KubeError:
        return


async def shipped(server: ApiServer, key: Key, annotations: Mapping[str, str]) -> dict[str, str]:
    """The code that was shipped with a job; nothing where none was."""
    name = annotations.get(CODE, "")
    if not name:
        return {}
    try:
        found: dict[str, Any] = await server.call(requests.get(CONFIGMAPS, key.namespace, name))
    except NotFound:
        return {}
    return dict(found.get("binaryData") or {})


async def check_successor(server: ApiServer, found: FoundJob) -> None:
    """Raises what the server has against this job by now, while the old one is still there.

    It is asked for another name of the same length. A quota that the old job fills is no obstacle.
    """
    job = found.view
    name = f"r{secrets.token_hex(32)}"[: len(job.name)]
    body = successor(Key(job.namespace, name), found)
    try:
        await server.call(requests.create(found.kind.resource, job.namespace, body, dry_run=True))
    except AlreadyExists:
        return
    except Forbidden as error:
        if "exceeded quota" not in error.message:
            raise


async def recreate(
    server: ApiServer, key: Key, found: FoundJob, shipped: Mapping[str, str]
) -> JobView:
    """The job, which is gone by now, once more; asked for until there is an answer."""
    body = successor(key, found)
    async with asyncio.timeout(_PATIENCE):
        while (made := await _recreated(server, key, found, body)) is None:  # noqa: ASYNC110
            await asyncio.sleep(_PAUSE)
    job = found.kind.view(made)
    if shipped:
        await _store(server, key, job, shipped)
    return job


async def _recreated(
    server: ApiServer, key: Key, found: FoundJob, body: dict[str, Any]
) -> dict[str, Any] | None:
    """None where nobody knows yet whether it was made."""
    resource = found.kind.resource
    try:
        made: dict[str, Any] = await server.call(requests.create(resource, key.namespace, body))
    except (Unreachable, ServerFault):
        return None
    except AlreadyExists:
        made = await server.call(requests.get(resource, key.namespace, key.name))
        notes = made["metadata"].get("annotations") or {}
        if notes.get(RESTARTS) != body["metadata"]["annotations"][RESTARTS]:
            raise
    return made


async def without_admission(server: ApiServer, found: FoundJob) -> FoundJob:
    """The job without what Kueue wrote into its templates as it admitted it."""
    if found.kind is not MPIJOB or LABEL_QUEUE not in found.view.labels:
        return found
    spec = kueue.without_admission(found.data["spec"], await _templates_before(server, found))
    return FoundJob(found.kind, {**found.data, "spec": spec})


async def copy_without_admission(server: ApiServer, job: MPIJob, original: Key) -> MPIJob:
    """A copy of the job `original`, likewise; what differs from it is left as it is."""
    if LABEL_QUEUE not in job.metadata.labels:
        return job
    try:
        found = await find(server, original)
    except JobError:
        return job
    wire, before = mpijob.to_wire(job), await _templates_before(server, found)
    wire["spec"] = kueue.without_admission(wire["spec"], before, found.data["spec"])
    return decode(MPIJob, wire).value


async def _templates_before(server: ApiServer, found: FoundJob) -> dict[str, Mapping[str, Any]]:
    """The job's pod templates as Kueue found them; none where Kueue or the right to ask is not
    there."""
    workloads = await workloads_of(server, found.view.namespace, found.uid)
    return {one.name: one.template for one in workloads[0].spec.pod_sets} if workloads else {}


def successor(key: Key, found: FoundJob) -> dict[str, Any]:
    """The same job as a new one: what the server and controllers wrote is left behind."""
    meta: dict[str, Any] = found.data["metadata"]
    notes = {k: v for k, v in (meta.get("annotations") or {}).items() if k not in ONE_RUN}
    notes[RESTARTS] = str(1 + whole_number(notes.get(RESTARTS, ""), 0))
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


async def delete(
    server: ApiServer, resource: Resource, key: Key, uid: str, version: str = ""
) -> None:
    """Returns when nothing of that very job is left, whoever deleted it. JobChanged where it has
    another `version` by now.

    Foreground deletion: the job's object is the last to go, so its end is the end of everything.
    """
    request = requests.delete(
        resource,
        key.namespace,
        key.name,
        uid=uid,
        resource_version=version,
        propagation="Foreground",
    )
    try:
        await server.call(request, None)
    except (NotFound, Conflict) as error:
        if version and isinstance(error, Conflict):
            raise job_changed(key) from error
        # Somebody was quicker, and another job may bear the name by now.
        return
    async with aclosing(server.watches.follow(resource, key)) as states:
        async for found in states:
            if found is None or found["metadata"]["uid"] != uid:
                return


def save_manifest(manifest: dict[str, Any]) -> Path:
    """A file for its owner alone that holds the job."""
    name = f"{manifest['metadata']['name']}-"
    with NamedTemporaryFile("wb", prefix=name, suffix=".json", delete=False) as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2))
    return Path(file.name)


async def ended(
    server: ApiServer,
    found: FoundJob,
    work: asyncio.Future[JobView],
    kept: Path,
    patience: float | None,
) -> None:
    """Waits for a replacement whose caller has left, for `patience` seconds where they are given: a
    finalizer can keep a job for ever. Where the job is there still, nothing is kept of it here."""
    await asyncio.wait({work}, timeout=patience)
    if work.done():
        work.result()
        return
    work.cancel()
    await asyncio.wait({work})
    job = found.view
    with suppress(KubeError, TimeoutError):
        async with asyncio.timeout(_LAST_LOOK):
            now = await server.call(requests.get(found.kind.resource, job.namespace, job.name))
        if now["metadata"]["uid"] == found.uid:
            await asyncio.to_thread(kept.unlink, missing_ok=True)


async def replace_job(
    server: ApiServer, key: Key, found: FoundJob, shipped: Mapping[str, str], kept: Path
) -> JobView:
    """The job deleted and made again; `kept` holds it meanwhile, and stays where that fails."""
    hint = f"It is kept in {kept}; create it with `kubectl create -f {kept}`."
    try:
        await delete(server, found.kind.resource, key, found.uid)
    except (Unreachable, ServerFault) as error:
        raise JobError(
            f"job {key} may have been deleted and was not recreated: {error}", hint
        ) from error
    except KubeError:
        await asyncio.to_thread(kept.unlink)  # the server has refused, so it is still there
        raise
    try:
        made = await recreate(server, key, found, shipped)
    except (KubeError, TimeoutError) as error:
        problem = f"job {key} was deleted and could not be recreated: {error or 'no answer'}"
        raise JobError(problem, hint) from error
    await asyncio.to_thread(kept.unlink)
    return made
