"""What an MPIJob in a file and a cluster disagree about, object by object.

The job is compared both ways, so a field taken out of the file counts; its children as far as they
are rendered. The Secret is not read: nobody needs to see its keys for this. Pods that a finished or
suspended job no longer has are no difference, and neither is that Kueue suspends a queue's job.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from mpi_trainer.api.kinds import conditions, kueue
from mpi_trainer.api.kinds.mpijob import MPIJob, to_wire
from mpi_trainer.api.yaml import load
from mpi_trainer.cli.planned import Planned, of
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import ConfigError, NotFound
from mpi_trainer.kube.resources import CONFIGMAPS, JOBS, MPIJOBS, PODS, SERVICES, Resource
from mpi_trainer.layout.mpijob import LABEL_JOB, LABEL_ROLE
from mpi_trainer.render import names
from mpi_trainer.render.drift import Change, drift
from mpi_trainer.render.mpijob.children import Object
from mpi_trainer.render.trainjob.jobsets import RENDERED

replace = msgspec.structs.replace

NEW, SURPLUS, CHANGED = "would be created", "would be removed", "differs"
# What definitions say of fields that nobody has set, and what the server writes by itself.
_FILLED: Final = {
    "creationTimestamp": None,
    "groupName": "default",
    "protocol": "TCP",
    "replicas": 1,
    "restartStrategy": "Recreate",
    "whenDeleted": "Delete",
}
# The controller's own notes, which say no more than the rest does.
_MARKS = frozenset({names.ATTEMPT, RENDERED})


class Difference(msgspec.Struct, frozen=True):
    kind: str
    name: str
    state: str
    changes: tuple[Change, ...] = ()


class FoundObject(msgspec.Struct, frozen=True):
    """The job's objects on the cluster; None for what is not there."""

    job: Object | None
    service: Object | None = None
    config_map: Object | None = None
    launcher_job: Object | None = None
    workers: dict[str, Object] = {}


async def found(client: Client, namespace: str, name: str) -> FoundObject:
    job = await read(client, MPIJOBS, namespace, name)
    if job is None:
        return FoundObject(None)
    labels = f"{LABEL_JOB}={name},{LABEL_ROLE}=worker"
    listed: Object = await client.call(requests.list_page(PODS, namespace, labels, limit=0))
    return FoundObject(
        job,
        await read(client, SERVICES, namespace, names.service(name)),
        await read(client, CONFIGMAPS, namespace, names.config_map(name)),
        await read(client, JOBS, namespace, f"{name}-launcher"),
        # Items of a list do not say what they are.
        {_name(pod): {"apiVersion": "v1", "kind": "Pod", **pod} for pod in listed["items"] or ()},
    )


async def read(client: Client, resource: Resource, namespace: str, name: str) -> Object | None:
    """None where there is no such object; an error where the server knows no such kind."""
    try:
        answer: Object = await client.call(requests.get(resource, namespace, name))
    except NotFound as error:
        if error.reason == "NotFound":
            return None
        raise ConfigError(
            f"the cluster has no {resource.kind} in {resource.api_version};"
            " install the custom resource definitions first"
        ) from None
    return answer


def differences(planned: Planned, domain: str, seen: FoundObject) -> Iterator[Difference]:
    """Nothing where applying the file would change nothing."""
    job = _as_queued(planned.job, seen.job)
    if seen.job is None:
        yield Difference("mpijob", job.name, NEW)
        own = (made for made in planned if made is not planned.scripts)
        yield from (Difference(made["kind"].lower(), _name(made), NEW) for made in own)
        return
    if changes := tuple(_job_changes(job, seen.job)):
        yield Difference("mpijob", job.name, CHANGED, changes)
    uid = seen.job["metadata"]["uid"]
    owned = replace(job.metadata, uid=uid)
    children = of(replace(job, metadata=owned), domain).children
    resting = _resting(seen.job)
    pairs = [
        (children.service, seen.service),
        (children.config_map, seen.config_map),
        *((pod, seen.workers.get(_name(pod))) for pod in children.workers),
        (children.launcher_job, seen.launcher_job),
    ]
    for made, live in pairs:
        yield from child(made, live, resting)
    for name in sorted(seen.workers.keys() - {_name(pod) for pod in children.workers}):
        yield Difference("pod", name, SURPLUS)


def child(made: Object, live: Object | None, resting: bool) -> Iterator[Difference]:
    """One that a controller makes; a resting job need not have it."""
    kind, name = made["kind"].lower(), _name(made)
    if live is None:
        if not resting:
            yield Difference(kind, name, NEW)
        return
    changes = tuple(c for c in drift(made, live) if c.path[-1] not in _MARKS)
    if changes:
        yield Difference(kind, name, CHANGED, changes)


def _job_changes(job: MPIJob, live: Object) -> Iterator[Change]:
    known = load.job(live).value
    yield from both_ways(to_wire(job), to_wire(known) if isinstance(known, MPIJob) else live)


def both_ways(wanted: Object, live: Object) -> Iterator[Change]:
    """How a user's own object differs; of its metadata, in labels and annotations that he sets."""
    metadata = wanted["metadata"]
    kept = {k: metadata[k] for k in ("labels", "annotations") if k in metadata}
    yield from drift({"metadata": kept, "spec": wanted["spec"]}, live)
    for back in drift(live.get("spec", {}), wanted["spec"], ("spec",)):
        if (
            back.live is msgspec.UNSET
            and _FILLED.get(str(back.path[-1]), msgspec.UNSET) != back.wanted
        ):
            yield Change(back.path, back.wanted, msgspec.UNSET)


def queued(live: Object) -> bool:
    """A queue has the job: whether it is suspended is Kueue's business, not the file's."""
    return kueue.QUEUE in (live["metadata"].get("labels") or {})


def _as_queued(job: MPIJob, live: Object | None) -> MPIJob:
    known = load.job(live).value if live is not None and queued(live) else None
    if not isinstance(known, MPIJob):
        return job
    policy = replace(job.spec.run_policy, suspend=known.spec.run_policy.suspend)
    spec = replace(job.spec, run_policy=policy)
    return replace(job, spec=spec)


def _resting(live: Object) -> bool:
    known = load.job(live).value
    if not isinstance(known, MPIJob):
        return False
    return bool(known.spec.run_policy.suspend) or conditions.finished(known.status.conditions)


def _name(made: Object) -> str:
    name: Any = made["metadata"]["name"]
    return str(name)
