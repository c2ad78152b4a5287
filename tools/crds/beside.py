"""Our CRD for a cluster that has one already, with versions in it that objects are stored in.

The old training operator stored MPIJobs as `v1` in the same definition. The API server refuses a
definition that forgets a version which may still be stored, so such a version stays, unserved,
and what is stored in it is read as `v2beta1` with the fields that both have. Danger: clients of
the old version get "not found" from then on; `remarks` say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

Definition = dict[str, Any]


class Merged(msgspec.Struct, frozen=True):
    """What to apply, and what whoever applies it should know."""

    definition: Definition
    remarks: tuple[str, ...] = ()


def merged(ours: Definition, existing: Mapping[str, Any]) -> Merged:
    """`ours`, and after it every other version in which objects may be stored."""
    name = existing["metadata"]["name"]
    if name != ours["metadata"]["name"]:
        raise ValueError(f"metadata.name: {name!r} is not {ours['metadata']['name']!r}")
    known = {version["name"] for version in ours["spec"]["versions"]}
    stored = set(existing.get("status", {}).get("storedVersions", ())) - known
    old = [version for version in existing["spec"]["versions"] if version["name"] in stored]
    kept = [{**version, "served": False, "storage": False} for version in old]
    versions = [*ours["spec"]["versions"], *kept]
    dropped = [
        version["name"]
        for version in existing["spec"]["versions"]
        if version["name"] not in known | stored
    ]
    return Merged(
        definition={**ours, "spec": {**ours["spec"], "versions": versions}},
        remarks=(
            *(f"{each['name']}: objects are stored in it; kept, unserved" for each in kept),
            *(
                f"{each['name']}: was served; its clients must move"
                for each in old
                if each["served"]
            ),
            *(f"{each}: nothing is stored in it; dropped" for each in dropped),
        ),
    )
