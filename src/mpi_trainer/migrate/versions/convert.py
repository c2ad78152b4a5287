"""An MPIJob of any version as any other, as an API server asks for it (API-4).

Guarantee: total; only labels and annotations of the metadata change, as the API server demands.
What v2beta1 has no field for stands in the annotation `CONVERSION`, and comes back when the object
is read as what it was. The annotation is anybody's text: what it says counts only where the result
converts to the very spec that stands in the open, so it hides nothing from whoever reads v2beta1.
Danger: what is beyond `edits.LARGEST`, such as a field of v1 with a very long text, is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from mpi_trainer.api.kinds import mpijob
from mpi_trainer.api.kinds.annotations import AS_WRITTEN, CONVERSION
from mpi_trainer.migrate.legacy_kinds import V1ALPHA1, VERSIONS
from mpi_trainer.migrate.versions import alpha, v1
from mpi_trainer.migrate.versions.edits import (
    LARGEST,
    MOST,
    Group,
    Kept,
    Object,
    applied,
    decoded,
    encoded,
)

HUB: Final = mpijob.API_VERSION
KNOWN: Final = (HUB, *VERSIONS)
_ROOM: Final = 256 * 1024
"""bytes of all annotations of one object, as Kubernetes has it"""
# What the API server writes into a v2beta1 that is stored, as its definition says.
_DEFAULTS: Final[frozenset[tuple[str, Any]]] = frozenset({
    ("launcherCreationPolicy", "AtStartup"), ("runLauncherAsWorker", False),
    ("slotsPerWorker", 1), ("sshAuthMountPath", "/root/.ssh"), ("suspend", False),
    ("mpiImplementation", mpijob.OPEN_MPI), ("protocol", "TCP"), ("name", ""), ("service", ""),
    ("optional", False), ("readOnly", False), ("fsType", "ext4"), ("fsType", "xfs"),
    ("cachingMode", "ReadWrite"), ("kind", "Shared"), ("iscsiInterface", "default"),
    ("keyring", "/etc/ceph/keyring"), ("pool", "rbd"), ("user", "admin"),
    ("storageMode", "ThinProvisioned"),
})  # fmt: skip


def converted(data: Mapping[str, Any], to: str) -> Object:
    """`to` is one of `KNOWN`, and so is the version that `data` has."""
    version = data.get("apiVersion")
    if version == to:
        return dict(data)
    hub = dict(data) if version == HUB else _to_hub(data)
    return hub if to == HUB else _from_hub(hub, to)


def _to_hub(data: Mapping[str, Any]) -> Object:
    version, spec, status = str(data["apiVersion"]), data.get("spec"), data.get("status")
    mark = _notes(data).get(CONVERSION)
    if version == V1ALPHA1:
        made = alpha.spec_to_v2beta1(spec)
        created = str((data.get("metadata") or {}).get("creationTimestamp") or "")
        new_status = alpha.status_to_v2beta1(status, created)
        kept = Kept(
            version,
            spec=None if made is spec else dict(spec or {}),
            status=None if new_status is status else dict(status or {}),
        )
    else:
        made, undo = v1.to_v2beta1(spec, as_written=mark == AS_WRITTEN)
        kept, new_status = Kept(version, undo), status
    whole = {**data, "apiVersion": HUB}
    whole |= {"spec": made} if "spec" in data else {}
    whole |= {"status": new_status} if "status" in data else {}
    return _marked(whole, _text(kept))


def _from_hub(data: Object, to: str) -> Object:
    mark = _notes(data).get(CONVERSION)
    kept = decoded(mark) if isinstance(mark, str) else None
    kept = kept if kept is not None and (kept.version == V1ALPHA1) == (to == V1ALPHA1) else None
    spec, status = data.get("spec"), data.get("status")
    note = ""
    if to == V1ALPHA1:
        if kept and kept.spec and same(alpha.spec_to_v2beta1(kept.spec), spec):
            spec = kept.spec
        status = alpha.status_of_v2beta1(status)
    else:
        spec, as_written = _undone(spec, kept.undo if kept else ())
        note = AS_WRITTEN if as_written else ""
    whole = {**data, "apiVersion": to}
    whole |= {"spec": spec} if "spec" in data else {}
    whole |= {"status": status} if "status" in data else {}
    return _marked(whole, note)


def _undone(spec: Any, groups: tuple[Group, ...]) -> tuple[Any, bool]:
    """What converts to this spec, and whether it is to be read as it is written.

    Where the spec was changed since, each group comes back that is still true of it.
    """
    before = spec
    for group in groups:
        before = applied(before, group) if before is not None else None
    if before is not None and same(v1.to_v2beta1(before)[0], spec):
        return before, False
    as_written = not same(v1.to_v2beta1(spec)[0], spec)
    found = spec
    for group in groups:
        tried = applied(found, group)
        if tried is not None and same(v1.to_v2beta1(tried, as_written=as_written)[0], spec):
            found = tried
    return found, as_written


def same(made: Any, seen: Any) -> bool:
    """Whether `seen` is `made`, but for what the API server fills in."""
    if made is seen or made == seen:
        return True
    if isinstance(made, Mapping) and isinstance(seen, Mapping):
        if any(key not in seen and value is not None for key, value in made.items()):
            return False
        return all(
            same(made[key], value) if made.get(key) is not None else _is_default(key, value)
            for key, value in seen.items()
        )
    if isinstance(made, list) and isinstance(seen, list) and len(made) == len(seen):
        return all(map(same, made, seen))
    return False


def _is_default(key: Any, value: Any) -> bool:
    return value is None or (isinstance(value, str | int) and (key, value) in _DEFAULTS)


def _text(kept: Kept) -> str:
    """Empty where there is nothing to keep; of what is too much, the groups that have room."""
    count = sum(map(len, kept.undo))
    text = encoded(kept)
    while kept.undo and (len(text.encode()) > LARGEST or count > MOST):
        largest = max(kept.undo, key=lambda group: len(encoded(Kept("", (group,)))))
        kept = replace(kept, undo=tuple(one for one in kept.undo if one is not largest))
        count, text = sum(map(len, kept.undo)), encoded(kept)
    if not (kept.undo or kept.spec or kept.status) or len(text.encode()) > LARGEST:
        return ""
    return text


def _notes(data: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = data.get("metadata")
    notes = meta.get("annotations") if isinstance(meta, Mapping) else None
    return notes if isinstance(notes, Mapping) else {}


def _marked(data: Object, text: str) -> Object:
    """With this annotation, or without any of ours; without it too where Kubernetes would refuse
    it for its size, since then nobody could read the object."""
    notes = {key: value for key, value in _notes(data).items() if key != CONVERSION}
    taken = sum(len(str(part).encode("utf-8", "replace")) for one in notes.items() for part in one)
    if text and taken + len(CONVERSION) + len(text.encode()) <= _ROOM:
        notes[CONVERSION] = text
    if notes == _notes(data):
        return data
    meta = {key: value for key, value in data["metadata"].items() if key != "annotations"}
    return {**data, "metadata": {**meta, **({"annotations": notes} if notes else {})}}
