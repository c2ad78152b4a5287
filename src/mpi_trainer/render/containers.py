"""Changes to single containers of a pod template, whose other parts stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mpi_trainer.render.frame import Object


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
