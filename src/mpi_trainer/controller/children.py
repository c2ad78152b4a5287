"""Creating a child of a job once, also where the answer to an earlier try was lost.

A child has a fixed name, so a second try finds what the first one created. It is taken as ours only
if it has this very job as its owner. A child of an earlier job of the same name is being deleted
and is waited for; anybody else's object is never touched.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from mpi_trainer.api.kinds.mpijob import KIND
from mpi_trainer.controller.objects import Answer
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import AlreadyExists, NotFound
from mpi_trainer.kube.resources import MPIJOBS, TRAINJOBS, Resource
from mpi_trainer.runtime.backoff import Chance, Curve
from mpi_trainer.runtime.partial import Meta

OWNERS = {one.kind: one for one in (MPIJOBS, TRAINJOBS)}
_CURVE: Final = Curve(first=0.5, cap=30.0, spread=0.1, both_ways=True)
_PATIENCE: Final = timedelta(minutes=5)
_LONGEST: Final = timedelta(seconds=40)
"""that a wait for the next try takes, with some time for the try itself"""


class NameTaken(Exception):
    """Somebody else's object has the name that a child needs."""


class Predecessor(Exception):
    """An object of an earlier job of this name is still there; it goes by itself."""


async def get_or_create(
    client: Client,
    resource: Resource,
    owner: Meta,
    desired: Mapping[str, Any],
    kind: str = KIND,
) -> tuple[Meta, bool]:
    """The child's metadata, and whether it was made just now; `kind` is its owner's."""
    create = requests.brief(requests.create(resource, owner.namespace, desired))
    once = msgspec.structs.replace(create, tries=1)
    name = desired["metadata"]["name"]
    try:
        return (await client.call(once, Answer)).metadata, True
    except AlreadyExists:
        pass
    try:
        get = requests.brief(requests.get(resource, owner.namespace, name))
        found = await client.call(get, Answer)
    except NotFound:
        raise Predecessor(f"{resource.kind} {name} was there a moment ago") from None
    return check_owner(resource, owner, found.metadata, kind), False


def check_owner(resource: Resource, owner: Meta, found: Meta, kind: str = KIND) -> Meta:
    """`found`, if it is a child of `owner`: by its kind, its group and its uid."""
    holder = found.controller()
    if holder is not None and not holder.of(OWNERS[kind]):
        holder = None
    if holder is not None and holder.uid == owner.uid:
        if found.deletion_timestamp is not None:
            raise Predecessor(f"{resource.kind} {found.name} is still being deleted")
        return found
    if holder is not None and holder.name == owner.name:
        raise Predecessor(f"{resource.kind} {found.name} of an earlier {owner.name} is still there")
    raise NameTaken(
        f"{resource.kind} {found.name} already exists and is not managed by this {kind}; "
        "delete it, or give the job another name"
    )


class NameWait(msgspec.Struct):
    """How long a job waits for what an earlier job of its name has left.

    Most often that is gone within a second. What somebody keeps from going is tried less and less
    often, and after a few minutes the name counts as taken. Only time between two tries counts: a
    clock that is set, or a job that is suspended meanwhile, does not use the minutes up.
    """

    waited: timedelta = timedelta()
    tries: int = 0
    last: datetime | None = None

    def again(self, now: datetime, chance: Chance = random.random) -> float | None:
        """The seconds until the next try; None: it has waited long enough."""
        passed = now - (self.last or now)
        self.waited += max(min(passed, _LONGEST), timedelta())
        self.last = now
        if self.waited >= _PATIENCE:
            return None
        self.tries += 1
        return _CURVE.delay(self.tries - 1, chance)


def name_taken_text(error: Exception) -> str:
    """Why the name counts as taken, and what to do."""
    return (
        f"{error}, though it has had {_PATIENCE // timedelta(minutes=1)} minutes to go; see what "
        "keeps it (`kubectl get -o yaml`, metadata.finalizers), or give the job another name"
    )
