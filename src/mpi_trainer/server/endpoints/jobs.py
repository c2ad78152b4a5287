"""Jobs: list, read, create, delete, suspend, resume, restart and clone, of each kind.

Every path of a job exists twice: with its namespace, and as a short one (`/api/mpijobs/{name}`)
that takes the namespace as a parameter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import msgspec

from mpi_trainer.api import bounds, names
from mpi_trainer.api.errors import INVALID, FieldError
from mpi_trainer.api.kinds import mpijob, trainjob
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.sdk.backends.backend import JobQuery, JobView
from mpi_trainer.sdk.errors import JobNotFound, JobTimeout
from mpi_trainer.sdk.job import copies
from mpi_trainer.sdk.job.explain import explained
from mpi_trainer.sdk.job.state import job_metrics
from mpi_trainer.server import (
    bodies,
    everywhere,
    multipart,
    paging,
    uploads,
    values,
    versions,
    views,
)
from mpi_trainer.server.endpoint import (
    CRUD_SECONDS,
    LONG_SECONDS,
    Answer,
    Call,
    Endpoint,
    Manifest,
    NoQuery,
)
from mpi_trainer.server.endpoints import history, logs, plan
from mpi_trainer.server.paging import ListQuery, ShortListQuery
from mpi_trainer.server.problems import bad_request

replace = msgspec.structs.replace

_TYPES: Final[dict[str, Any]] = {mpijob.KIND: MPIJob, trainjob.KIND: TrainJob}
DELETE_SECONDS: Final = CRUD_SECONDS - 5.0


class ShortQuery(msgspec.Struct, frozen=True, rename="camel"):
    """Without a namespace, the one where jobs go that name none."""

    namespace: str = ""


async def list_jobs(call: Call) -> Answer:
    """Of every namespace that the caller can see where none is named."""
    query: ListQuery = call.query
    paging.check_selector(query.label_selector)
    namespace = call.path.get("namespace") or call.given_namespace
    wanted = JobQuery(labels=query.label_selector)
    read = await call.reads.read(
        namespace,
        query.label_selector,
        lambda: everywhere.jobs(call.backend, namespace, wanted),
        paging.read_of(query),
    )
    page = await call.reads.cut(read, lambda: paging.page(read.jobs, query, call.now, read.name))
    items = tuple(map(views.item, page.jobs))
    return Answer(values.JobList(items, page.total, page.token, page.facets, read.notes))


async def get(call: Call) -> Answer:
    found = await call.backend.get(call.key)
    tag = (("ETag", versions.etag(found)),)
    if versions.unchanged(found, call.if_none_match):
        return Answer(status=304, headers=tag)
    return Answer(views.job(found), headers=tag)


async def create(call: Call) -> Answer:
    if call.media_type == multipart.MEDIA_TYPE:
        read = uploads.job_with_code
        job, code = await asyncio.to_thread(read, call.body, call.content_type, call.namespace)
        made = await call.backend.create_with_code(job, code)
    elif call.kind == mpijob.KIND:
        made = await call.backend.create(await _body(call, MPIJob))
    else:
        made = await call.backend.create_trainjob(await _body(call, TrainJob))
    return _changed(made, 201)


async def _body(call: Call, kind: type[copies.J]) -> copies.J:
    """What is large is read beside the event loop."""

    def read() -> copies.J:
        return bodies.job(call.body, call.media_type, kind, call.namespace)

    large = len(call.body) > bounds.SHORT_TEXT
    return await asyncio.to_thread(read) if large else read()


async def delete(call: Call) -> Answer:
    """204 when nothing is left; 202 where the job's pods take longer to end than a call may."""
    seen = await _seen(call)
    try:
        async with asyncio.timeout(DELETE_SECONDS):
            await call.backend.delete(call.key, seen)
    except TimeoutError:
        try:
            found = await call.backend.get(call.key)
        except JobNotFound:
            return Answer(status=204)
        if found.times.deleted is None:
            raise JobTimeout(
                f"job {call.key} was not deleted within {DELETE_SECONDS:g} seconds",
                "Look at the job, and repeat the call.",
            ) from None
        return Answer(views.job(found), status=202)
    return Answer(status=204)


async def suspend(call: Call) -> Answer:
    return _changed(await call.backend.suspend(call.key, await _seen(call)))


async def resume(call: Call) -> Answer:
    return _changed(await call.backend.resume(call.key, await _seen(call)))


async def restart(call: Call) -> Answer:
    return _changed(await call.backend.restart(call.key, await _seen(call)))


async def clone(call: Call) -> Answer:
    wanted = bodies.value(call.body, values.CloneRequest)
    fault = names.dns1123_subdomain(wanted.name)
    if fault is not None:
        raise bad_request([FieldError(("name",), INVALID, wanted.name, fault.rule, fault.remedy)])
    seen = await call.backend.get(call.key)
    versions.check_match(seen, call.if_match)
    changes = copies.Overrides(
        workers=wanted.workers,
        slots=wanted.slots,
        image=wanted.image,
        command=wanted.command,
        env=tuple(wanted.env.items()),
    )
    original = decode(MPIJob, seen.manifest).value
    wire = copies.copied(original, wanted.name, call.namespace, changes)
    return _changed(await call.backend.copy(copies.sound(wire), call.key), 201)


async def in_other_forms(call: Call) -> Answer:
    """Of a job that is there, as a new one of its name."""
    found = await call.backend.get(call.key)
    return await plan.forms(decode(_TYPES[call.kind], found.manifest).value, call.namespace)


async def _seen(call: Call) -> JobView | None:
    """The job as the caller has seen it, where they say so by If-Match."""
    if not call.if_match:
        return None
    found = await call.backend.get(call.key)
    versions.check_match(found, call.if_match)
    return found


def _changed(job: JobView, status: int = 200) -> Answer:
    return Answer(views.job(job), status, (("ETag", versions.etag(job)),))


async def status(call: Call) -> Answer:
    return Answer(views.status(await call.backend.details(call.key)))


async def events(call: Call) -> Answer:
    found = (await call.backend.details(call.key)).events
    return Answer(values.EventList(views.alike(found, tuple[values.Event, ...])))


async def metrics(call: Call) -> Answer:
    details = await call.backend.details(call.key)
    usage = await call.backend.usage([call.key])
    found = job_metrics(details, usage.get(call.key), call.now)
    return Answer(views.alike(found, values.Metrics))


async def explain(call: Call) -> Answer:
    found = await explained(call.backend, call.key)
    return Answer(values.Findings(views.alike(found, tuple[values.Finding, ...])))


def _all_kinds() -> Iterator[Endpoint]:
    for path, where in (
        ("/api/v1/jobs", "of all namespaces"),
        ("/api/v1/namespaces/{namespace}/jobs", "of a namespace"),
    ):
        name = "listJobs" if where == "of a namespace" else "listAllJobs"
        text = f"Jobs of every kind, {where}"
        yield Endpoint("GET", path, name, text, list_jobs, values.JobList, query=ListQuery)


def _of_kind(kind: str) -> Iterator[Endpoint]:
    plural = f"{kind.lower()}s"
    space, one = f"/api/v1/namespaces/{{namespace}}/{plural}", "/{name}"

    def path(
        method: str, rest: str, name: str, summary: str, run: Callable[[Call], Awaitable[Answer]],
        answer: object = values.Job, **more: object,
    ) -> Endpoint:  # fmt: skip
        whole = {"method": method, "path": f"{space}{rest}", "name": f"{name}{kind}"}
        fields = {"summary": summary, "run": run, "answer": answer, "kind": kind}
        return Endpoint(**whole, **fields, **more)  # type: ignore[arg-type]

    yield Endpoint(
        "GET",
        f"/api/v1/{plural}",
        f"listAll{kind}s",
        f"{kind}s of all namespaces",
        list_jobs,
        values.JobList,
        query=ListQuery,
        kind=kind,
    )
    yield replace(
        path("GET", "", "list", f"{kind}s of a namespace", list_jobs, values.JobList,
             query=ListQuery),
        name=f"list{kind}s",
    )  # fmt: skip
    form = uploads.LARGEST_UPLOAD if kind == mpijob.KIND else 0
    yield path("POST", "", "create", f"Submit one {kind}", create, status=201, body=Manifest(kind),
               largest_form=form)  # fmt: skip
    yield path("GET", one, "get", f"One {kind}", get, also=(304,))
    yield path("DELETE", one, "delete", "End a job and remove it", delete, status=204, also=(202,))
    yield path("GET", f"{one}/status", "getStatusOf", "Where a job stands", status,
               values.JobStatus)  # fmt: skip
    yield path("GET", f"{one}/events", "getEventsOf", "What happened to a job", events,
               values.EventList)  # fmt: skip
    yield path("GET", f"{one}/metrics", "getMetricsOf", "What a job says of itself and uses",
               metrics, values.Metrics)  # fmt: skip
    yield path("GET", f"{one}/metrics/history", "getMetricsHistoryOf",
               "What a job printed of itself and used, over time", history.history,
               values.MetricsHistory, query=history.HistoryQuery)  # fmt: skip
    yield path("GET", f"{one}/explain", "explain", "Why a job failed, and what to do", explain,
               values.Findings, seconds=LONG_SECONDS)  # fmt: skip
    yield path("GET", f"{one}/equivalents", "tell", "A job as a command, a program, and YAML",
               in_other_forms, values.Equivalents)  # fmt: skip
    for rest, name, text, run, query in logs.PATHS:
        yield path("GET", f"{one}{rest}", name, text, run, values.LogLines, query=query,
                   seconds=LONG_SECONDS, text=True)  # fmt: skip
    yield path("POST", f"{one}/suspend", "suspend", "End a job's pods but keep the job", suspend)
    yield path("POST", f"{one}/resume", "resume", "Let a suspended job run", resume)
    yield path("POST", f"{one}/restart", "restart", "Run a job again from the beginning", restart,
               seconds=LONG_SECONDS)  # fmt: skip
    if kind == mpijob.KIND:
        yield path("POST", f"{one}/clone", "clone", "Submit a copy of a job, with changes", clone,
                   status=201, body=values.CloneRequest)  # fmt: skip


def _short(endpoint: Endpoint) -> Endpoint:
    """`/api/mpijobs/{name}` for the same with its namespace in the path."""
    path = endpoint.path.replace("/api/v1/namespaces/{namespace}/", "/api/")
    query = ShortListQuery if endpoint.query is ListQuery else _with_namespace(endpoint.query)
    return replace(endpoint, path=path, query=query, name=f"{endpoint.name}Short")


def _with_namespace(query: type[msgspec.Struct]) -> type[msgspec.Struct]:
    return ShortQuery if query is NoQuery else (logs.SHORT | history.SHORT)[query]


_KINDS: Final = tuple(one for kind in (mpijob.KIND, trainjob.KIND) for one in _of_kind(kind))
ENDPOINTS: Final = (
    *_all_kinds(),
    *_KINDS,
    *(_short(one) for one in _KINDS if "{namespace}" in one.path),
)
