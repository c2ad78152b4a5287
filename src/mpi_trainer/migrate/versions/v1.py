"""The spec of an MPIJob v1 (and v1alpha2) as v2beta1, with the edits that undo it.

Each rule takes a spec and gives it changed, with its own way back; or None where it has nothing to
do or where the way back would be long. Guarantee: total, whatever stands in the spec.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER
from mpi_trainer.migrate.legacy import IMPLEMENTATIONS, MOVED, RESTARTS
from mpi_trainer.migrate.legacy_pods import names_script, sleeps
from mpi_trainer.migrate.versions.edits import Edit, Group, Object, Step

_SPECS: Final = "mpiReplicaSpecs"
_LONGEST_WORDS = 256
"""characters of a worker's command, or of a variable, that is left out and kept"""

Rule = Callable[[Object], tuple[Object, Group] | None]
Path = tuple[Step, ...]


def to_v2beta1(spec: Any, *, as_written: bool = False) -> tuple[Any, tuple[Group, ...]]:
    """The spec, and the way back, the last rule's first. `as_written`: a job of v2beta1 on its way
    through v1, in which no rule of v1 is meant but those of its fields."""
    if not isinstance(spec, Mapping):
        return spec, ()
    made: Object = dict(spec)
    undo: list[Group] = []
    for rule in _FIELDS if as_written else (*_FIELDS, *_MEANINGS):
        done = rule(made)
        if done is not None:
            made, back = done
            undo.insert(0, back)
    return made, tuple(undo)


def _policy(name: str) -> Rule:
    """A policy at the top goes under runPolicy, where one that is there already counts."""

    def moved(spec: Object) -> tuple[Object, Group] | None:
        policy = spec.get("runPolicy")
        if name not in spec or not isinstance(policy, Mapping | None):
            return None
        value = spec[name]
        rest = {key: one for key, one in spec.items() if key != name}
        again = Edit("set", (name,), value)
        if value is None or (policy or {}).get(name) is not None:
            return rest, (again,)
        whole = {**(policy or {}), name: value}
        if not policy:
            # An empty runPolicy, one that is null and none at all are three ways to write nothing.
            before = Edit("set", ("runPolicy",), policy) if "runPolicy" in spec else None
            return {**rest, "runPolicy": whole}, (before or Edit("unset", ("runPolicy",)), again)
        null = name in policy
        back = Edit("set" if null else "unset", ("runPolicy", name))
        return {**rest, "runPolicy": whole}, (back, again)

    return moved


def _distribution(spec: Object) -> tuple[Object, Group] | None:
    name = "mpiDistribution"
    if name not in spec or spec.get("mpiImplementation") is not None:
        return None
    value = spec[name]
    known = IMPLEMENTATIONS.get(value, value) if isinstance(value, str) else value
    rest = {key: one for key, one in spec.items() if key not in (name, "mpiImplementation")}
    there = Edit("set" if "mpiImplementation" in spec else "unset", ("mpiImplementation",))
    if value is None:
        return rest, (Edit("set", (name,)), *((there,) if there.op == "set" else ()))
    return {**rest, "mpiImplementation": known}, (there, Edit("set", (name,), value))


def _main(spec: Object) -> tuple[Object, Group] | None:
    """The first container is the main one: so it is put first."""
    if "mainContainer" not in spec:
        return None
    name = spec["mainContainer"]
    rest = {key: one for key, one in spec.items() if key != "mainContainer"}
    again = Edit("set", ("mainContainer",), name)
    path, containers = _containers(spec, LAUNCHER)
    names = [one.get("name") if isinstance(one, Mapping) else None for one in containers]
    if name is None or name not in names or (place := names.index(name)) == 0:
        return rest, (again,)
    first = [containers[place], *containers[:place], *containers[place + 1 :]]
    return _put(rest, path, first), (Edit("move", path, to=place), again)


def _restarts(role: str) -> Rule:
    def replaced(spec: Object) -> tuple[Object, Group] | None:
        path: Path = (_SPECS, role, "restartPolicy")
        value = _at(spec, path)
        if not isinstance(value, str) or value not in RESTARTS:
            return None
        return _put(spec, path, RESTARTS[value]), (Edit("set", path, value),)

    return replaced


def _agent(spec: Object) -> tuple[Object, Group] | None:
    """Ranks are started by SSH and no longer by a script of the old operator's."""
    path, containers = _containers(spec, LAUNCHER)
    back: list[Edit] = []
    made = list(containers)
    for n, container in enumerate(containers):
        env = container.get("env") if isinstance(container, Mapping) else None
        if not isinstance(env, list):
            continue
        gone = [m for m, one in enumerate(env) if _is_agent(one)]
        if gone:
            made[n] = {**container, "env": [one for m, one in enumerate(env) if m not in gone]}
            back += [Edit("insert", (*path, n, "env", m), env[m]) for m in gone]
    if not back or len(back) > 4:
        return None
    return _put(spec, path, made), tuple(back)


def _is_agent(variable: Any) -> bool:
    short = isinstance(variable, Mapping) and variable.keys() == {"name", "value"}
    return short and names_script(dict(variable)) and len(str(variable)) <= _LONGEST_WORDS


def _worker(spec: Object) -> tuple[Object, Group] | None:
    """A worker that slept, for a script to enter it, runs an SSH server."""
    path, containers = _containers(spec, WORKER)
    first = containers[0] if containers else None
    if not isinstance(first, Mapping):
        return None
    words = {name: first[name] for name in ("command", "args") if name in first}
    plain = all(
        isinstance(said, list) and all(isinstance(word, str) for word in said)
        for said in words.values()
    )
    if not plain or not sleeps(words) or len(str(words)) > _LONGEST_WORDS:
        return None
    bare = {key: one for key, one in first.items() if key not in words}
    back = tuple(Edit("set", (*path, 0, name), said) for name, said in words.items())
    return _put(spec, path, [bare, *containers[1:]]), back


_FIELDS: tuple[Rule, ...] = (*map(_policy, MOVED), _distribution, _main)
_MEANINGS: tuple[Rule, ...] = (_restarts(LAUNCHER), _restarts(WORKER), _agent, _worker)


def _containers(spec: Object, role: str) -> tuple[Path, list[Any]]:
    path: Path = (_SPECS, role, "template", "spec", "containers")
    found = _at(spec, path)
    return path, found if isinstance(found, list) else []


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _put(value: Any, path: Path, new: Any) -> Any:
    """A copy along the path, which is there."""
    return {**value, path[0]: new if len(path) == 1 else _put(value[path[0]], path[1:], new)}
