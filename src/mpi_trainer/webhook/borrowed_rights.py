"""What a job asks of the cluster that its user may not be allowed to ask alone. Pure.

The controller makes the pods with its own identity, so whatever a template names, it is the
controller that gets it: another service account's token, a folder of the node, a place on any
node. Everything in a template that `podfields` does not call harmless is a claim, read from the
template as it came, so that a field of next year is one too. A claim is granted to a user who could
have made the pod, or who holds the one right that it is about.

What is new is asked of whoever brings it: at a change, the claims that were not there before, by
container and volume and with the same value. Who changes what the pods run brings that to every
claim of the job, so all of them are asked then; a queue changes only where pods go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from mpi_trainer.api.errors import FORBIDDEN, FieldError, Path
from mpi_trainer.webhook.equality import AMOUNTS, canonical
from mpi_trainer.webhook.pod_fields import (
    ASKED,
    CONTAINER_LISTS,
    HARMLESS,
    MAKE_PODS,
    PLACEMENT,
    SECRET,
    UNCONFINED,
    UNKNOWN,
    Asked,
    Right,
)

Key = tuple[str, ...]
"""a path in which lists of things with names have these, and other entries are written out"""

_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_NAMED = frozenset({*CONTAINER_LISTS, "volumes", "env"})
_PLACES = frozenset(tuple(path.split(".")) for path in PLACEMENT)
_HERE = "in this namespace"


class Template(msgspec.Struct, frozen=True):
    """A pod template as it came, whose it is, and where it is written."""

    owner: str
    path: Path
    content: Any


class Claim(msgspec.Struct, frozen=True):
    """A wish, where it is written, and the rights of which any one is enough."""

    path: Path
    value: object
    wish: str
    rights: tuple[Right, ...]
    key: Key = ()

    def refusal(self, user: str, where: str = _HERE) -> FieldError:
        rule = f"{self.wish}, and {user} may not {self._wanted(where)}"
        which = "that right" if len(self.rights) == 1 else "one of these rights"
        remedy = f"remove it, or ask an administrator for {which}"
        return FieldError(self.path, FORBIDDEN, self.value, rule, remedy)

    def unanswered(self, user: str, where: str = _HERE) -> FieldError:
        asked = f"whether {user} may {self._wanted(where)}"
        rule = f"{self.wish}, and {asked} could not be asked in time or with so many others"
        return FieldError(self.path, FORBIDDEN, self.value, rule, "try again, or ask for less")

    def _wanted(self, where: str) -> str:
        """Each right with the place where it is to be held."""
        wide = [right for right in self.rights if right.cluster]
        near = [right for right in self.rights if not right.cluster]
        places = ((near, where), (wide, "for the whole cluster"))
        return " or ".join(f"{_listed_rights(some)} {place}" for some, place in places if some)


# A tree of the paths in `podfields`; None is harmless with everything below it.
Known = dict[str, "Known | Asked | None"]


def _tree(paths: Iterable[tuple[str, Asked | None]]) -> Known:
    tree: Known = {}
    for path, leaf in paths:
        *steps, last = path.replace("[]", ".[]").split(".")
        at = tree
        for step in steps:
            below = at.setdefault(step, {})
            assert isinstance(below, dict), f"{path} lies within another path"
            at = below
        at[last] = leaf
    return tree


_KNOWN = _tree([*((path, None) for path in HARMLESS), *ASKED.items()])


def of_mpijob(job: object) -> tuple[Template, ...]:
    """Of an MPIJob as it came, whatever came."""
    path: Path = ("spec", "mpiReplicaSpecs")
    roles = inside(job, *path)
    return tuple(
        Template(role, (*path, role, "template"), inside(spec, "template"))
        for role, spec in (roles.items() if isinstance(roles, Mapping) else ())
    )


def of_runtime(runtime: object) -> tuple[Template, ...]:
    """Of a runtime of either kind as it came, whatever came."""
    path: Path = ("spec", "template", "spec", "replicatedJobs")
    below: Path = ("template", "spec", "template")
    jobs = inside(runtime, *path)
    return tuple(
        Template(str(inside(job, "name")), (*path, n, *below), inside(job, *below))
        for n, job in enumerate(jobs if isinstance(jobs, list) else ())
    )


def volume_claims(runtime: object) -> tuple[Claim, ...]:
    """What a runtime has its JobSets make beside pods."""
    path: Path = ("spec", "template", "spec", "volumeClaimPolicies")
    value = inside(runtime, *path)
    wish = "PersistentVolumeClaims would be created"
    rights = (MAKE_PODS, Right("create", "persistentvolumeclaims"))
    return (Claim(path, value, wish, rights, ("", canonical(value))),) if value else ()


def claims(templates: Iterable[Template], own: str = "") -> tuple[Claim, ...]:
    """`own`: the Secret with the job's own keys."""
    return tuple(claim for one in templates for claim in _template(one, own))


class Brought(msgspec.Struct, frozen=True):
    """What a change brings: its claims, and whether the pods would run something else."""

    claims: tuple[Claim, ...]
    program: bool


def brought(old: tuple[Template, ...], new: tuple[Template, ...], own: str = "") -> Brought:
    """All claims of the job where the change brings something to be run."""
    found, program = claims(new, own), bool(facts(new) - facts(old))
    if not found or program:
        return Brought(found, program)
    there = {claim.key for claim in claims(old, own)}
    return Brought(tuple(claim for claim in found if claim.key not in there), program)


def facts(templates: Iterable[Template]) -> set[Key]:
    """All that templates say, value by value, but for where pods go."""
    return {fact for one in templates for fact in _facts(one.content, (one.owner,))}


def inside(data: object, *steps: str | int) -> Any:
    for step in steps:
        data = data.get(step) if isinstance(data, Mapping) else None
    return data


def _template(one: Template, own: str) -> Iterator[Claim]:
    found = list(_walk(one.content, _KNOWN, one.path, (one.owner,)))
    yield from (claim for claim in found if not (own and claim.value == own and _of_keys(claim)))
    annotations = inside(one.content, "metadata", "annotations")
    for name, value in annotations.items() if isinstance(annotations, Mapping) else ():
        if name.startswith(_APPARMOR) and value == "unconfined":
            steps = ("metadata", "annotations", name)
            yield _claim(UNCONFINED, value, (*one.path, *steps), (one.owner, *steps))
    volumes = {claim.key[3]: claim for claim in found if claim.key[1:3] == ("spec", "volumes")}
    if volumes:
        yield from _mounts(one, volumes)


def _of_keys(claim: Claim) -> bool:
    return claim.wish == SECRET.wish


def _mounts(one: Template, volumes: Mapping[str, Claim]) -> Iterator[Claim]:
    """Who mounts a volume that needs a right needs it too."""
    for kind in CONTAINER_LISTS:
        for n, container in enumerate(_listed(inside(one.content, "spec", kind))):
            for field in ("volumeMounts", "volumeDevices"):
                for m, mount in enumerate(_listed(inside(container, field))):
                    volume = volumes.get(str(inside(mount, "name")))
                    if volume is not None:
                        path = (*one.path, "spec", kind, n, field, m)
                        key = (one.owner, "spec", kind, _name(container), field, canonical(mount))
                        yield Claim(path, mount, volume.wish, volume.rights, key)


def _walk(
    value: Any, known: Known | Asked | None, path: Path, key: tuple[Any, ...]
) -> Iterator[Claim]:
    """`key` has whole entries of lists in it, which are written out only for a claim."""
    if known is None or value is None or value == "" or value == []:
        return
    if isinstance(known, Asked):
        if not known.free(value):
            yield _claim(known, value, path, key)
    elif "[]" in known and isinstance(value, list):
        named = key[-1] in _NAMED
        for n, item in enumerate(value):
            step = _name(item) if named else item
            yield from _walk(item, known["[]"], (*path, n), (*key, step))
    elif "[]" not in known and isinstance(value, Mapping):
        for name, item in value.items():
            below = known.get(name, UNKNOWN)
            yield from _walk(item, below, (*path, name), (*key, name))
    else:
        yield _claim(UNKNOWN, value, path, key)


def _claim(asked: Asked, value: Any, path: Path, key: tuple[Any, ...]) -> Claim:
    steps = (step if isinstance(step, str) else canonical(step) for step in (*key, [value]))
    return Claim(path, value, asked.wish, asked.rights(value), tuple(steps))


def _facts(value: Any, key: Key) -> Iterator[Key]:
    if key[1:] in _PLACES or not value:
        return
    if key[-1] in AMOUNTS:
        yield (*key, canonical({key[-1]: value}))
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _facts(item, (*key, str(name)))
    elif isinstance(value, list) and key[-1] in _NAMED:
        for item in value:
            yield from _facts(item, (*key, _name(item)))
    elif isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
        yield from ((*key, canonical(item)) for item in value)
    else:
        yield (*key, canonical(value))


def _listed_rights(rights: Iterable[Right]) -> str:
    return " or ".join(f"`{right.words()}`" for right in rights)


def _name(item: Any) -> str:
    return str(inside(item, "name"))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
