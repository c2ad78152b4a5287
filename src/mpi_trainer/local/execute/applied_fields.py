"""Which fields of a pod template have an effect on this machine, and which of a job's have none.

Two tables hold all of it, as paths: `[]` is every item of a list, `[0]` the first alone, and a
path stands for everything below it. What no path covers is not applied, so a field that nobody
knows yet is named too. Pure. Danger: a path in `APPLIED` is a promise of `plan`, `volumes`
or `environment`; take it out here when they stop keeping it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.decide.observed import Role
from mpi_trainer.layout.launch import SHELLS

COMMAND = ("spec.containers[0].command", "spec.containers[0].args")

APPLIED = (
    "metadata.annotations",
    "metadata.labels",
    *COMMAND,
    "spec.containers[0].env[].name",
    "spec.containers[0].env[].value",
    "spec.containers[0].env[].valueFrom.configMapKeyRef",
    "spec.containers[0].env[].valueFrom.fieldRef.fieldPath",
    "spec.containers[0].env[].valueFrom.secretKeyRef",
    "spec.containers[0].envFrom[].configMapRef",
    "spec.containers[0].envFrom[].prefix",
    "spec.containers[0].envFrom[].secretRef",
    "spec.containers[0].resources.limits.cpu",
    "spec.containers[0].resources.limits.memory",
    "spec.containers[0].volumeMounts[].mountPath",
    "spec.containers[0].volumeMounts[].name",
    "spec.containers[0].volumeMounts[].readOnly",
    "spec.containers[0].volumeMounts[].subPath",
    "spec.containers[0].workingDir",
    "spec.terminationGracePeriodSeconds",
    "spec.volumes[].configMap",
    "spec.volumes[].emptyDir",
    "spec.volumes[].hostPath.path",
    "spec.volumes[].name",
    "spec.volumes[].persistentVolumeClaim",
    "spec.volumes[].secret",
)

# Nothing to apply, or said elsewhere: `decide` restarts, and the image has a line of its own.
SILENT = (
    "spec.containers[0].env[].valueFrom.fieldRef.apiVersion",
    "spec.containers[0].image",
    "spec.containers[0].name",
    "spec.containers[0].ports",
    "spec.restartPolicy",
)

# A tree of the paths above; an empty one covers everything below it.
FieldTree = dict[str, "FieldTree"]

_UNSET: tuple[object, ...] = (None, "", [], {})
_OPERATORS = frozenset(";&|<>()$`\n")


def not_applied(template: PodTemplate, role: Role = "launcher") -> tuple[str, ...]:
    """The fields of the template that do nothing here, in its order, none within another.

    A worker runs our sshd in place of its own command, which is missed only if it is another.
    """
    known = _LAUNCHER if role == "launcher" or _starts_sshd(template) else _WORKER
    paths = _left_out(template.content, known, "")
    return tuple(dict.fromkeys(p.removeprefix(".").removeprefix("spec.") for p in paths))


def _field_tree(paths: Iterable[str]) -> FieldTree:
    tree: FieldTree = {}
    for path in paths:
        at = tree
        for step in path.replace("[", ".[").split("."):
            at = at.setdefault(step, {})
    return tree


_LAUNCHER = _field_tree((*APPLIED, *SILENT))
_WORKER = _field_tree(path for path in (*APPLIED, *SILENT) if path not in COMMAND)


def _left_out(value: Any, known: FieldTree | None, path: str) -> Iterator[str]:
    if value in _UNSET or known == {}:
        return
    if known is None or not isinstance(value, (dict, list)):
        yield path
        return
    parts = _fields(value, known) if isinstance(value, dict) else _items(value, known)
    for label, part, below in parts:
        yield from _left_out(part, below, path + label)


def _fields(
    values: dict[str, Any], known: FieldTree
) -> Iterator[tuple[str, Any, FieldTree | None]]:
    for key, value in values.items():
        yield f".{key}" if key.isidentifier() else f"[{key}]", value, known.get(key)


def _items(values: list[Any], known: FieldTree) -> Iterator[tuple[str, Any, FieldTree | None]]:
    for number, item in enumerate(values):
        if "[]" in known:
            name = item.get("name", number) if isinstance(item, dict) else number
            yield f"[{name}]", item, known["[]"]
        else:
            yield f"[{number}]", item, known.get(f"[{number}]")


def _starts_sshd(template: PodTemplate) -> bool:
    """Whether the first container runs sshd, perhaps by a shell that does nothing else."""
    containers = template.view.spec.containers[:1]
    words = [word for c in containers for word in (*c.command, *c.args)]
    if len(words) == 3 and PurePosixPath(words[0]).name in SHELLS and words[1].endswith("c"):
        line = words[2]
        words = [] if _OPERATORS & set(line) else line.removeprefix("exec ").split()
    return bool(words) and PurePosixPath(words[0]).name == "sshd"
