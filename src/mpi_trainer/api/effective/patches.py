"""A TrainJob's runtime patches, laid over a replicated job as Kubernetes' strategic merge does it.

Managers come one after another, the later one wins. Objects are merged field by field, and these
lists by key; any other list is replaced. Two things are kinder than upstream: a list keeps the
template's order, and a variable or volume that is given anew takes the old one's place whole, so
that `value` and `valueFrom`, or two kinds of volume, never meet in one entry.
Danger: a patch for a container that the template lacks is left out; validation refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from mpi_trainer.api.kinds.trainjob import RuntimePatch

Raw = Mapping[str, Any]

_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
}
_WHOLE = frozenset({"env", "volumes"})
_NO_NEW = frozenset({"containers", "initContainers"})


def with_patches(job: Raw, patches: Iterable[RuntimePatch]) -> Raw:
    """The replicated job with every patch that names it applied."""
    for patch in patches:
        for change in patch.replicated_jobs:
            if change.name == job.get("name"):
                job = _merged(job, msgspec.to_builtins(change))
    return job


def jobset_metadata(patches: Iterable[RuntimePatch], field: str) -> dict[str, str]:
    """The labels or annotations that the patches give the JobSet itself."""
    found: dict[str, str] = {}
    for patch in patches:
        meta = patch.template.metadata
        if meta is not None:
            found |= getattr(meta, field)
    return found


def merged_by_key(old: Sequence[Raw], new: Iterable[Raw], key: str = "name") -> list[Raw]:
    """`old` with each entry of `new` in the place of the one of its key, or at the end."""
    entries = {entry.get(key): entry for entry in old}
    return list((entries | {entry.get(key): entry for entry in new}).values())


def _merged(old: Raw, new: Raw) -> Raw:
    fields = dict(old)
    for name, value in new.items():
        if value is not None:
            fields[name] = _value(name, old.get(name), value)
    return fields


def _value(name: str, old: Any, new: Any) -> Any:
    if isinstance(new, Mapping):
        return _merged(old or {}, new) if isinstance(old, Mapping | None) else new
    if name in _KEYS and isinstance(new, list | tuple) and isinstance(old, list | tuple | None):
        return _list(name, old or (), new)
    return new


def _list(name: str, old: Sequence[Raw], new: Sequence[Raw]) -> list[Raw]:
    key = _KEYS[name]
    if name in _WHOLE:
        return merged_by_key(old, new, key)
    there = {entry.get(key): entry for entry in old}
    kept = [entry for entry in new if name not in _NO_NEW or entry.get(key) in there]
    return merged_by_key(
        old, [_merged(there.get(entry.get(key), {}), entry) for entry in kept], key
    )
