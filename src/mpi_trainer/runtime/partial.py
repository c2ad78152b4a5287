"""Objects as a controller keeps them: only the fields that it reads.

A thousand pods kept so cost 3 MB instead of 40, and the garbage collector never visits them. The
danger: an unread field is lost, so a partial value must never be sent back as a whole object.
Write by patch, apply, or create; what is kept is only for reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from mpi_trainer.kube.resources import Resource


class Key(NamedTuple):
    """Names an object among those of its kind; the work queue's unit."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Partial(
    msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True
):
    """Base of kept values. `gc=False` is safe because a frozen tree has no cycles."""


class OwnerRef(Partial, frozen=True, gc=False):
    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool = False

    def of(self, resource: Resource) -> bool:
        """Whether it names an object of this kind, in whichever version of its group."""
        group = self.api_version.rpartition("/")[0]
        return (self.kind, group) == (resource.kind, resource.group)


class Meta(Partial, frozen=True, gc=False):
    """What controllers read of an object's metadata; managed fields are left out on purpose."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner_references: tuple[OwnerRef, ...] = ()
    finalizers: tuple[str, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None

    def controller(self) -> OwnerRef | None:
        """The one owner that controls it."""
        return next((o for o in self.owner_references if o.controller), None)


class HasNames(Protocol):
    """Metadata as far as the machinery itself reads it; `api.meta.ObjectMeta` fits too."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...


class Kept(Protocol):
    """Anything that a store may hold."""

    @property
    def metadata(self) -> HasNames: ...


T = TypeVar("T", bound=Kept)


def key_of(value: Kept) -> Key:
    return Key(value.metadata.namespace, value.metadata.name)


def version_number(resource_version: str) -> int:
    """Resource versions of one kind are ordered as numbers; an odd one counts as unknown, -1."""
    return int(resource_version) if resource_version.isdecimal() else -1
