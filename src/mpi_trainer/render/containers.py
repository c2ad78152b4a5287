"""The container of a pod that runs the job, and changes to single containers of a template."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mpi_trainer.render.frame import Object


def main_container(spec: Object, name: str = "") -> Object:
    """That of the name, else the first; it may be changed in place. The others are its user's."""
    containers: list[Object] = spec["containers"]
    return next((one for one in containers if name and one.get("name") == name), containers[0])


def changed(pod: Object, name: str, change: Callable[[Object], Object]) -> Object:
    """The template with what `change` makes of its container `name`, or init container."""
    spec: Object = pod.get("spec") or {}
    lists = {
        field: [change(one) if one.get("name") == name else one for one in spec[field]]
        for field in ("initContainers", "containers")
        if spec.get(field)
    }
    return {**pod, "spec": {**spec, **lists}}


def merged(
    given: Iterable[Object] | None, ours: Iterable[Object], key: str = "name"
) -> list[Object]:
    """Both lists; ours win over those of the same key."""
    new = list(ours)
    taken = {one[key] for one in new}
    return [*(one for one in given or () if one.get(key) not in taken), *new]
