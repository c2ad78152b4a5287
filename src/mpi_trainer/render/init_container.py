"""The init container that makes ready what the main container's program will find.

It is the main container's twin: same image, user and rights, and the template's variables and
folders, so that whatever lets the one run lets the other, Pod Security included. MPI's variables
and files are not for it: each is stored with every pod, and checking them again was a third of what
a JobSet costs the API server. Of the resources it takes
processors, memory and local storage: quotas ask for them, they keep the pod's class of service, and
being no larger than the main container's they cost nothing. It takes no device: those are for the
ranks.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy

from mpi_trainer.render import names
from mpi_trainer.render.frame import Object

NAME = "mpi-prepare"
_ALIKE = ("image", "imagePullPolicy", "securityContext", "env", "envFrom", "volumeMounts")
_OF_DEVICES = "NVIDIA_VISIBLE_DEVICES"
_RESOURCES = ("cpu", "memory", "ephemeral-storage")


def init_containers(spec: Object, main: Object, command: tuple[str, ...]) -> list[Object]:
    """The pod's init containers and, last, ours; `main` has its mounts already."""
    own: list[Object] = spec.get("initContainers") or []
    taken = {container.get("name") for container in (*own, *spec["containers"])}
    prepare: Object = {"name": names.unused(NAME, taken), "command": list(command)}
    prepare |= {field: deepcopy(main[field]) for field in _ALIKE if main.get(field)}
    if resources := modest(main.get("resources") or {}):
        prepare["resources"] = resources
    return [*own, prepare]


def modest(given: Object) -> Object:
    """What quotas ask for, and no device: those are for the ranks."""
    kept = {
        kind: {
            name: amount for name, amount in (given.get(kind) or {}).items() if name in _RESOURCES
        }
        for kind in ("requests", "limits")
    }
    return {kind: amounts for kind, amounts in kept.items() if amounts}


def variables(added: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """That of the main container's which keeps devices from this one too."""
    return tuple(one for one in added if one[0] == _OF_DEVICES)
