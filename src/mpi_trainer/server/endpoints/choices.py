"""What a new job can choose from: namespaces, runtimes and queues; and what this server is."""

from __future__ import annotations

import asyncio
from typing import Final, Literal

import msgspec

from mpi_trainer import __version__
from mpi_trainer.api.errors import SUSPICIOUS
from mpi_trainer.api.kinds import trainjob
from mpi_trainer.api.kinds.runtime import CLUSTER, Runtime
from mpi_trainer.sdk.backends.backend import JobQuery, JobSummary
from mpi_trainer.sdk.errors import K8sApiException
from mpi_trainer.sdk.job.check import Target
from mpi_trainer.sdk.job.trainjob import find_runtime, training_runtime
from mpi_trainer.server import choice_values, values
from mpi_trainer.server.endpoint import Answer, Call, Endpoint
from mpi_trainer.server.views import alike

MOST_USERS: Final = 500


class RuntimeQuery(msgspec.Struct, frozen=True, rename="camel"):
    """Without a kind, the namespace's own runtime goes before the cluster's."""

    kind: Literal["TrainingRuntime", "ClusterTrainingRuntime", ""] = ""


async def about(call: Call) -> Answer:
    user = await call.backend.user()
    return Answer(values.About(__version__, call.backend.name, user, call.grafana))


async def namespaces(call: Call) -> Answer:
    found = await call.backend.projects()
    projects = alike(tuple(found), tuple[values.Project, ...])
    names = tuple(one.name for one in found)
    return Answer(values.NamespaceList(names, call.backend.namespace, projects))


async def permissions(call: Call) -> Answer:
    found = await call.backend.permissions(call.namespace)
    return Answer(values.PermissionList(alike(tuple(found), tuple[values.Permission, ...])))


async def runtimes(call: Call) -> Answer:
    found = [training_runtime(one) for one in await call.backend.runtimes(call.namespace)]
    return Answer(choice_values.RuntimeList(alike(found, tuple[choice_values.Runtime, ...])))


async def runtime(call: Call) -> Answer:
    query: RuntimeQuery = call.query
    found = await find_runtime(call.backend, call.path["name"], call.namespace, query.kind)
    shown = alike(training_runtime(found), choice_values.Runtime)
    used_by, notes = await _used_by(call, found)
    return Answer(
        choice_values.RuntimeDetails(
            **msgspec.structs.asdict(shown),
            used_by=used_by,
            lint=await _lint(call, found),
            notes=notes,
        )
    )


async def _lint(call: Call, found: Runtime) -> tuple[choice_values.Lint, ...]:
    restricted = await call.backend.enforces_restricted(call.namespace)
    read = Target(found, found).found
    shown = await asyncio.to_thread(lambda: read(restricted=restricted))
    return tuple(
        choice_values.Lint(
            severity="warning" if one.problem == SUSPICIOUS else "error",
            field=one.field,
            message=str(one),
            remedy=one.remedy,
        )
        for one in shown
    )


async def _used_by(call: Call, found: Runtime) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The newest first. A list that is closed to the caller hides no runtime."""
    asked = JobQuery(manifests=True)
    try:
        jobs = await call.backend.of_kind(trainjob.KIND).list(call.namespace, asked)
    except K8sApiException as refusal:
        return (), (f"which jobs use it is not known: {refusal.problem}",)
    names = [one.key.name for one in jobs if one.runtime == found.name and _names(one, found)]
    more = len(names) - MOST_USERS
    notes = (f"{more} more jobs use it",) if more > 0 else ()
    return tuple(names[:MOST_USERS]), notes


def _names(job: JobSummary, found: Runtime) -> bool:
    """Whether it means this kind of runtime, of two that may have one name."""
    ref = ((job.manifest or {}).get("spec") or {}).get("runtimeRef") or {}
    return (ref.get("kind") or CLUSTER) == (found.kind or CLUSTER)


async def quotas(call: Call) -> Answer:
    found = await call.backend.quotas(call.namespace)
    return Answer(choice_values.QuotaList(alike(tuple(found), tuple[choice_values.Quota, ...])))


async def queues(call: Call) -> Answer:
    found = await call.backend.queues(call.namespace)
    return Answer(choice_values.QueueList(alike(tuple(found), tuple[choice_values.Queue, ...])))


_NAMESPACE: Final = "/api/v1/namespaces/{namespace}"

ENDPOINTS: Final = (
    Endpoint(
        "GET", "/api/v1", "getAbout", "This server, and who you are to it", about, values.About
    ),
    Endpoint(
        "GET",
        "/api/v1/namespaces",
        "listNamespaces",
        "Namespaces that you can see",
        namespaces,
        values.NamespaceList,
    ),
    Endpoint(
        "GET",
        f"{_NAMESPACE}/permissions",
        "listPermissions",
        "What you may do with jobs of a namespace",
        permissions,
        values.PermissionList,
    ),
    Endpoint(
        "GET",
        f"{_NAMESPACE}/runtimes",
        "listRuntimes",
        "Runtimes that TrainJobs of a namespace can name",
        runtimes,
        choice_values.RuntimeList,
    ),
    Endpoint(
        "GET",
        f"{_NAMESPACE}/runtimes/{{name}}",
        "getRuntime",
        "One runtime: what is wrong with it, and who uses it",
        runtime,
        choice_values.RuntimeDetails,
        query=RuntimeQuery,
    ),
    Endpoint(
        "GET",
        f"{_NAMESPACE}/quota",
        "listQuota",
        "What quotas of a namespace allow, and what is used",
        quotas,
        choice_values.QuotaList,
    ),
    Endpoint(
        "GET",
        f"{_NAMESPACE}/queues",
        "listQueues",
        "Queues that jobs of a namespace can name",
        queues,
        choice_values.QueueList,
    ),
)
