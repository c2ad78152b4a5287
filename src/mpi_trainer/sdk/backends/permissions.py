"""What a caller may do with jobs of a namespace, as actions that interfaces offer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec


class Right(msgspec.Struct, frozen=True):
    """A verb on a resource such as `pods/log`, of an API group; the core's is empty."""

    verb: str
    resource: str
    group: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"


class Permission(msgspec.Struct, frozen=True):
    """`reason` says why it is not allowed, and what to do."""

    action: str
    allowed: bool
    reason: str = ""


def _jobs(verb: str, resource: str, group: str) -> tuple[Right, ...]:
    return (Right(verb, resource, group),)


_MPI: Final = ("mpijobs", "kubeflow.org")
_TRAIN: Final = ("trainjobs", "trainer.kubeflow.org")
_LOGS: Final = Right("get", "pods/log")

ACTIONS: Final[Mapping[str, tuple[Right, ...]]] = {
    "create-mpijobs": _jobs("create", *_MPI),
    "delete-mpijobs": _jobs("delete", *_MPI),
    "change-mpijobs": _jobs("patch", *_MPI),
    "create-trainjobs": _jobs("create", *_TRAIN),
    "delete-trainjobs": _jobs("delete", *_TRAIN),
    "change-trainjobs": _jobs("patch", *_TRAIN),
    "read-logs": (_LOGS,),
    "read-pods": (Right("list", "pods"),),
    "read-events": (Right("list", "events"),),
    "upload-code": (Right("create", "configmaps"),),
    "test-runtimes": (*_jobs("create", *_TRAIN), *_jobs("delete", *_TRAIN), _LOGS),
}
"""the rights that each needs, all of them"""


def everything() -> tuple[Permission, ...]:
    return tuple(Permission(action, True) for action in ACTIONS)


def permissions(missing: Mapping[Right, str], namespace: str) -> tuple[Permission, ...]:
    """`missing`: the rights that the caller has not, and what the cluster says of each."""
    found = []
    for action, needed in ACTIONS.items():
        lacking = [right for right in needed if right in missing]
        found.append(Permission(action, not lacking, _reason(lacking, missing, namespace)))
    return tuple(found)


def _reason(lacking: list[Right], said: Mapping[Right, str], namespace: str) -> str:
    if not lacking:
        return ""
    rights = " and ".join(f"`{right}`" for right in lacking)
    words = next((f" ({said[right]})" for right in lacking if said[right]), "")
    return (
        f"you have no right to {rights} in namespace {namespace}{words}: "
        "ask an administrator for it"
    )
