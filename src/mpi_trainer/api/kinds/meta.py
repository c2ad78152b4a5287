"""Object metadata, as every Kubernetes object carries it.

`ApiValue` is the base of all wire types here: frozen, camelCase on the wire, and silent about
fields that were not set, so that what a user wrote is what we write back.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class ApiValue(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A value on the Kubernetes wire. Containers inside it are never changed in place."""


class PartlyRead(ApiValue, frozen=True):
    """A part of a public API that we pass on whole and read in part: a field that is not named
    here is no mistake, and never refused (W-3)."""


class ObjectMeta(ApiValue, frozen=True):
    """The metadata fields that the API server defines; a field not named here is a mistake."""

    name: str = ""
    generate_name: str | None = None
    namespace: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: Int64 | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[Mapping[str, Any], ...] = ()
    managed_fields: tuple[Mapping[str, Any], ...] = ()
    self_link: str | None = None


class ApiObject(ApiValue, frozen=True):
    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace
