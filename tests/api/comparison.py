"""Two Kubernetes objects side by side: where they differ, as values.

What the API server alone decides (uids, times, generated names) is left out first. Lists whose
items have names or paths are compared by those, whatever their order, and of two variables of one
name the last counts, as in a container; a part that only one side has is one difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

Object = dict[str, Any]

ABSENT = "(absent)"

_SERVERS_OWN = (
    "metadata.creationTimestamp",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
    "metadata.uid",
    "spec.selector.matchLabels",
    "spec.template.metadata.creationTimestamp",
    "spec.template.metadata.labels.batch.kubernetes.io/controller-uid",
    "spec.template.metadata.labels.controller-uid",
    "status",
)
_TOKEN = re.compile(r"kube-api-access-\w{5}")
_NAMED_BY = ("mountPath", "path", "name")
# Where one side has nothing, these count as empty, so that what is in them differs one by one.
_COLLECTIONS = re.compile(
    r".*(metadata|annotations|labels|initContainers|volumes|env|volumeMounts|dnsConfig)", re.DOTALL
)


class Unlike(msgspec.Struct, frozen=True):
    """`kind` is Service, ConfigMap, Secret, Job, Worker or Launcher, the last two for pods."""

    kind: str
    path: str
    theirs: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.kind} {self.path}: theirs {self.theirs!r}, ours {self.ours!r}"


def differences(theirs: Object, ours: Object) -> list[Unlike]:
    found = []
    left, right = _parts(theirs), _parts(ours)
    assert left.keys() == right.keys()
    for kind in left:
        found += [Unlike(kind, *rest) for rest in _compare("", left[kind], right[kind])]
    return found


def _parts(given: Object) -> dict[str, Object]:
    """A Job's pod apart from the Job; pods of both roles alike."""
    cleaned = _renamed(given)
    for path in _SERVERS_OWN:
        _drop(cleaned, path)
    kind = cleaned.pop("kind")
    if kind == "Secret":
        cleaned["data"] = dict.fromkeys(cleaned.get("data", {}), "…")
    if kind == "Pod":
        return {"Worker": cleaned}
    if kind == "Job":
        pod = cleaned["spec"].pop("template")
        return {"Job": cleaned, "Launcher": pod}
    return {kind: cleaned}


def _renamed(value: Any) -> Any:
    """A copy in which the volume of the API's token has one name everywhere."""
    if isinstance(value, dict):
        return {key: _renamed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item) for item in value]
    return _TOKEN.sub("kube-api-access", value) if isinstance(value, str) else value


def _drop(value: Object, path: str) -> None:
    head, _, rest = path.partition(".")
    if path in value:
        del value[path]
    elif rest and isinstance(value.get(head), dict):
        _drop(value[head], rest)


def _compare(path: str, theirs: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    if theirs == ours:
        return
    left, right = _keyed(theirs), _keyed(ours)
    if _COLLECTIONS.fullmatch(path):
        left = {} if theirs is ABSENT else left
        right = {} if ours is ABSENT else right
    if left is None or right is None:
        yield path, theirs, ours
        return
    for key in dict.fromkeys((*left, *right)):
        inner = key if not path or key.startswith("[") else f".{key}"
        yield from _compare(f"{path}{inner}", left.get(key, ABSENT), right.get(key, ABSENT))


def _keyed(value: Any) -> dict[str, Any] | None:
    if isinstance(value, dict):
        return value
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return None
    for name in _NAMED_BY:
        if all(name in item for item in value):
            return {f"[{item[name]}]": item for item in value}
    return None
