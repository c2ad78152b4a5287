"""What a job file and a cluster disagree about, object by object.

A user's own objects are compared both ways, so a field taken out of the file counts; what a
controller makes for them as far as it is rendered. Secrets are not read: nobody needs to see their
keys for this.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from typing import Final

import msgspec

from mpi_trainer.api.kinds.annotations import ATTEMPT, RENDERED
from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import ConfigError, Forbidden, NotFound
from mpi_trainer.kube.resources import NETWORK_POLICIES, POD_GROUPS, Resource
from mpi_trainer.render.drift import Change, drift
from mpi_trainer.render.frame import Object

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
_GUARDS: Final = (NETWORK_POLICIES, *POD_GROUPS)
_MARKS = frozenset({ATTEMPT, RENDERED})


class Difference(msgspec.Struct, frozen=True):
    kind: str
    name: str
    state: str
    changes: tuple[Change, ...] = ()


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


async def guards_with_theirs(
    client: Client, namespace: str, guards: Iterable[Object]
) -> AsyncIterator[tuple[Object, Object | None]]:
    """Each PodGroup and NetworkPolicy with that of the cluster; without those that the cluster does
    not know or that whoever asks may not read."""
    for made in guards:
        resource = next(one for one in _GUARDS if one.api_version == made["apiVersion"])
        with suppress(ConfigError, Forbidden):
            yield made, await read(client, resource, namespace, name_of(made))


def child_differences(made: Object, live: Object | None, resting: bool) -> Iterator[Difference]:
    """Of an object that a controller makes; a resting job need not have it."""
    kind, name = made["kind"].lower(), name_of(made)
    if live is None:
        if not resting:
            yield Difference(kind, name, NEW)
        return
    changes = tuple(c for c in drift(made, live) if c.path[-1] not in _MARKS)
    if changes:
        yield Difference(kind, name, CHANGED, changes)


def changes_both_ways(wanted: Object, live: Object) -> Iterator[Change]:
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
    return LABEL_QUEUE in (live["metadata"].get("labels") or {})


def name_of(made: Object) -> str:
    return str(made["metadata"]["name"])
