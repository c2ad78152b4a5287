"""The fields of pod templates by which a job would borrow the controller's rights. Pure.

The controller makes the pods under its own identity, so a template could get what its author may
not have: another service account's token, a folder of the node, any node. Everything in a template
that `pod_fields` does not call harmless is a claim. Templates are read as they came, so that a
field of a later Kubernetes is one too. A claim is granted to a user who could create the pod, or
who holds the one right that it is about.

At a change, the user who makes it needs the rights for the claims that were not there before, by
container and volume and with the same value. A change of what the pods run reaches every claim of
the job, so all of them are checked then; a queue changes only where pods go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from mpi_trainer.api.errors import FORBIDDEN, FieldError, Path
from mpi_trainer.webhook.equality import AMOUNTS, canonical
from mpi_trainer.webhook.pod_fields import (
    CONTAINER_LISTS,
    GUARDED,
    HARMLESS,
    PLACEMENT,
    SECRET,
    UNCONFINED,
    UNKNOWN,
    GuardedField,
    Right,
)

Key = tuple[str, ...]
"""a path in which an item of a list stands by its name, or else written out as JSON"""

_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_NAMED_ITEMS = frozenset({*CONTAINER_LISTS, "volumes", "env"})
_PLACEMENT = frozenset(tuple(path.split(".")) for path in PLACEMENT)
_HERE = "in this namespace"


class SourceTemplate(msgspec.Struct, frozen=True):
    """A pod template as it came; the role or replicated job that owns it; where it is written."""

    owner: str
    path: Path
    content: Any


class RightClaim(msgspec.Struct, frozen=True):
    """A value that needs one of `rights`, its effect, and where it is written."""

    path: Path
    value: object
    effect: str
    rights: tuple[Right, ...]
    key: Key = ()

    def refusal(self, user: str, where: str = _HERE) -> FieldError:
        rule = f"{self.effect}, and {user} may not {self._wanted(where)}"
        which = "that right" if len(self.rights) == 1 else "one of these rights"
        remedy = f"remove it, or ask an administrator for {which}"
        return FieldError(self.path, FORBIDDEN, self.value, rule, remedy)

    def unanswered(self, user: str, where: str = _HERE) -> FieldError:
        question = f"whether {user} may {self._wanted(where)}"
        rule = f"{self.effect}, and {question} could not be asked in time or with so many others"
        return FieldError(self.path, FORBIDDEN, self.value, rule, "try again, or ask for less")

    def _wanted(self, where: str) -> str:
        """Each right, and where it must be held."""
        wide = [right for right in self.rights if right.cluster]
        near = [right for right in self.rights if not right.cluster]
        places = ((near, where), (wide, "for the whole cluster"))
        return " or ".join(f"{_listed_rights(some)} {place}" for some, place in places if some)


# A tree of the paths in `pod_fields`; None is harmless with everything below it.
FieldTree = dict[str, "FieldTree | GuardedField | None"]


def _field_tree(paths: Iterable[tuple[str, GuardedField | None]]) -> FieldTree:
    tree: FieldTree = {}
    for path, leaf in paths:
        *steps, last = path.replace("[]", ".[]").split(".")
        at = tree
        for step in steps:
            below = at.setdefault(step, {})
            assert isinstance(below, dict), f"{path} lies within another path"
            at = below
        at[last] = leaf
    return tree


_FIELDS = _field_tree([*((path, None) for path in HARMLESS), *GUARDED.items()])


def claims(templates: Iterable[SourceTemplate], own_secret: str = "") -> tuple[RightClaim, ...]:
    """`own_secret`: the Secret with the job's own keys."""
    return tuple(claim for one in templates for claim in _template_claims(one, own_secret))


class AddedClaims(msgspec.Struct, frozen=True):
    """The claims that a change adds, and whether the pods would run something else."""

    claims: tuple[RightClaim, ...]
    new_program: bool


def added_claims(
    old: tuple[SourceTemplate, ...], new: tuple[SourceTemplate, ...], own_secret: str = ""
) -> AddedClaims:
    """All claims of the job where the pods would run something else."""
    found, new_program = claims(new, own_secret), bool(values_by_path(new) - values_by_path(old))
    if not found or new_program:
        return AddedClaims(found, new_program)
    before = {claim.key for claim in claims(old, own_secret)}
    return AddedClaims(tuple(claim for claim in found if claim.key not in before), new_program)


def values_by_path(templates: Iterable[SourceTemplate]) -> set[Key]:
    """Every value in the templates with its path, but for where pods go."""
    return {value for one in templates for value in _values_by_path(one.content, (one.owner,))}


def value_at(data: object, *steps: str | int) -> Any:
    for step in steps:
        data = data.get(step) if isinstance(data, Mapping) else None
    return data


def _template_claims(one: SourceTemplate, own_secret: str) -> Iterator[RightClaim]:
    found = list(_walk(one.content, _FIELDS, one.path, (one.owner,)))
    yield from (claim for claim in found if not _is_own_secret(claim, own_secret))
    annotations = value_at(one.content, "metadata", "annotations")
    for name, value in annotations.items() if isinstance(annotations, Mapping) else ():
        if name.startswith(_APPARMOR) and value == "unconfined":
            steps = ("metadata", "annotations", name)
            yield _claim(UNCONFINED, value, (*one.path, *steps), (one.owner, *steps))
    volumes = {claim.key[3]: claim for claim in found if claim.key[1:3] == ("spec", "volumes")}
    if volumes:
        yield from _mount_claims(one, volumes)


def _is_own_secret(claim: RightClaim, own_secret: str) -> bool:
    return bool(own_secret) and claim.value == own_secret and claim.effect == SECRET.effect


def _mount_claims(one: SourceTemplate, volumes: Mapping[str, RightClaim]) -> Iterator[RightClaim]:
    """A container that mounts a volume which needs a right needs it too."""
    for kind in CONTAINER_LISTS:
        for n, container in enumerate(_as_list(value_at(one.content, "spec", kind))):
            for field in ("volumeMounts", "volumeDevices"):
                for m, mount in enumerate(_as_list(value_at(container, field))):
                    volume = volumes.get(str(value_at(mount, "name")))
                    if volume is not None:
                        path = (*one.path, "spec", kind, n, field, m)
                        key = (one.owner, "spec", kind, _name(container), field, canonical(mount))
                        yield RightClaim(path, mount, volume.effect, volume.rights, key)


def _walk(
    value: Any, known: FieldTree | GuardedField | None, path: Path, key: tuple[Any, ...]
) -> Iterator[RightClaim]:
    """`key` holds whole items of lists, which are written out only for a claim."""
    if known is None or value is None or value == "" or value == []:
        return
    if isinstance(known, GuardedField):
        if not known.is_free(value):
            yield _claim(known, value, path, key)
    elif "[]" in known and isinstance(value, list):
        named = key[-1] in _NAMED_ITEMS
        for n, item in enumerate(value):
            step = _name(item) if named else item
            yield from _walk(item, known["[]"], (*path, n), (*key, step))
    elif "[]" not in known and isinstance(value, Mapping):
        for name, item in value.items():
            below = known.get(name, UNKNOWN)
            yield from _walk(item, below, (*path, name), (*key, name))
    else:
        yield _claim(UNKNOWN, value, path, key)


def _claim(field: GuardedField, value: Any, path: Path, key: tuple[Any, ...]) -> RightClaim:
    steps = (step if isinstance(step, str) else canonical(step) for step in (*key, [value]))
    return RightClaim(path, value, field.effect, field.rights(value), tuple(steps))


def _values_by_path(value: Any, key: Key) -> Iterator[Key]:
    if key[1:] in _PLACEMENT or not value:
        return
    if key[-1] in AMOUNTS:
        yield (*key, canonical({key[-1]: value}))
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _values_by_path(item, (*key, str(name)))
    elif isinstance(value, list) and key[-1] in _NAMED_ITEMS:
        for item in value:
            yield from _values_by_path(item, (*key, _name(item)))
    elif isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
        yield from ((*key, canonical(item)) for item in value)
    else:
        yield (*key, canonical(value))


def _listed_rights(rights: Iterable[Right]) -> str:
    return " or ".join(f"`{right.words()}`" for right in rights)


def _name(item: Any) -> str:
    return str(value_at(item, "name"))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
