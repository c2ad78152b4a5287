"""What a TrainJob's own fields change in a pod: image, command, variables, resources, sources.

`TrainerFields` says which of them a replicated job gets. Only the container of the expected name is
touched. Resources are merged amount by amount over the runtime's, variables by name, as upstream
does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mpi_trainer.api.effective.patches import merged_by_key
from mpi_trainer.api.kinds.trainjob import Source, Trainer

NODE_CONTAINER = "node"
STORAGE_URI = "STORAGE_URI"

Raw = Mapping[str, Any]


class TrainerFields(msgspec.Struct, frozen=True):
    image: bool = False
    command: bool = False
    env: bool = False
    resources: bool = False


def with_trainer(pod: Raw, trainer: Trainer, cut: TrainerFields) -> Raw:
    """The pod template with what `trainer` sets for its `node` container."""
    changes: dict[str, Any] = {}
    if cut.image and trainer.image:
        changes["image"] = trainer.image
    if cut.command and trainer.command is not None:
        changes["command"] = list(trainer.command)
    if cut.command and trainer.args is not None:
        changes["args"] = list(trainer.args)

    def change(container: Raw) -> Raw:
        fields = {**container, **changes}
        if cut.env and trainer.env:
            fields["env"] = merged_by_key(container.get("env") or (), trainer.env)
        if cut.resources and trainer.resources_per_node is not None:
            fields["resources"] = _resources(container, trainer.resources_per_node)
        return fields

    return _with_container(pod, NODE_CONTAINER, change)


def with_command(pod: Raw, command: Sequence[str]) -> Raw:
    """The pod template whose `node` container runs this command, with its arguments as they are."""
    return _with_container(pod, NODE_CONTAINER, lambda one: {**one, "command": list(command)})


def with_source(pod: Raw, source: Source, container: str) -> Raw:
    """The pod template of an initializer with what it is to fetch."""

    def change(fields: Raw) -> Raw:
        uri = (
            ()
            if source.storage_uri is None
            else ({"name": STORAGE_URI, "value": source.storage_uri},)
        )
        env = merged_by_key(fields.get("env") or (), (*uri, *source.env))
        given = list(fields.get("envFrom") or ())
        if source.secret_ref is not None:
            given.append({"secretRef": {"name": source.secret_ref.name}})
        return {**fields, **({"env": env} if env else {}), **({"envFrom": given} if given else {})}

    return _with_container(pod, container, change)


def container(pod: Raw, name: str) -> Raw:
    """The container of that name; empty where there is none."""
    listed_ones = _containers(pod)
    return next((one for one in listed_ones if one.get("name") == name), {})


def _containers(pod: Raw) -> Sequence[Raw]:
    return (pod.get("spec") or {}).get("containers") or ()


def _with_container(pod: Raw, name: str, change: Any) -> Raw:
    changed = [change(one) if one.get("name") == name else one for one in _containers(pod)]
    return {**pod, "spec": {**(pod.get("spec") or {}), "containers": changed}}


def _resources(container: Raw, wanted: Raw) -> Raw:
    base: Raw = container.get("resources") or {}
    merged = {**base, **{name: value for name, value in wanted.items() if value}}
    for kind in ("requests", "limits"):
        amounts = {**(base.get(kind) or {}), **(wanted.get(kind) or {})}
        if amounts:
            merged[kind] = amounts
    if wanted.get("claims"):
        merged["claims"] = merged_by_key(base.get("claims") or (), wanted["claims"])
    return merged
