"""Containers (V6 and area 7): names, images, folders and environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mpi_trainer.api import names
from mpi_trainer.api.errors import DUPLICATE, FORBIDDEN, INVALID, FieldError, Path
from mpi_trainer.api.kinds.pods import Container, EnvFrom, EnvVar, PodSpec
from mpi_trainer.api.validation import resources, rules
from mpi_trainer.api.yaml.decode import decode


def errors(path: Path, spec: PodSpec) -> rules.Errors:
    if not spec.containers:
        remedy = "add a container with a name and an image"
        yield rules.required((*path, "containers"), "must have at least one container", remedy)
    taken: set[str] = set()
    for field, listed in (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
    ):
        for n, container in enumerate(listed):
            where = (*path, field, n)
            yield from _container(where, container)
            if container.name and container.name in taken:
                rule = "another container of the pod has this name"
                remedy = "give each container its own name"
                yield FieldError((*where, "name"), DUPLICATE, container.name, rule, remedy)
            taken.add(container.name)


def variables(path: Path, env: Sequence[Mapping[str, Any]]) -> rules.Errors:
    """The same rules for variables that are not in a container yet, as they came."""
    found = decode(Container, {"env": env})
    for error in found.errors:
        yield replace(error, path=(*path, *error.path[1:]))
    for n, variable in enumerate(found.value.env):
        yield from _variable((*path, n), variable)


def _container(path: Path, container: Container) -> rules.Errors:
    if container.name:
        fault = names.dns1123_label(container.name)
        yield from rules.name_errors((*path, "name"), container.name, fault)
    else:
        remedy = "add for example `name: main`"
        yield rules.required((*path, "name"), "a container must have a name", remedy)
    if not container.image.strip():
        remedy = "set image to the container image to run"
        yield rules.required((*path, "image"), "a container must have an image", remedy)
    folder = container.working_dir
    if folder and not folder.startswith(("/", "$(")):
        rule = "must be an absolute path"
        yield FieldError((*path, "workingDir"), INVALID, folder, rule, f"write `/{folder}`")
    for n, variable in enumerate(container.env):
        yield from _variable((*path, "env", n), variable)
    for n, source in enumerate(container.env_from):
        yield from _source((*path, "envFrom", n), source)
    yield from resources.errors((*path, "resources"), container.resources)


def _variable(path: Path, variable: EnvVar) -> rules.Errors:
    if variable.name:
        yield from rules.name_errors((*path, "name"), variable.name, names.env_name(variable.name))
    else:
        rule = "an environment variable must have a name"
        yield rules.required((*path, "name"), rule, "add name, or remove the entry")
    source = variable.value_from
    if source is None:
        return
    where = (*path, "valueFrom")
    if variable.value:
        rule = "must not be set beside value"
        yield FieldError(where, FORBIDDEN, rule=rule, remedy="keep value or valueFrom")
    refs = {"configMapKeyRef": source.config_map_key_ref, "secretKeyRef": source.secret_key_ref}
    for field, ref in refs.items():
        if ref is not None and not ref.key:
            rule = "must name one key of the object"
            yield rules.required((*where, field, "key"), rule, "add the key to read")
        if ref is not None and not ref.name:
            rule = "must name the object to read"
            yield rules.required((*where, field, "name"), rule, "add the object's name")
    others = (source.field_ref, source.resource_field_ref)
    if sum(one is not None for one in (*refs.values(), *others)) > 1:
        rule = "must have exactly one source"
        yield FieldError(where, FORBIDDEN, rule=rule, remedy="keep one and remove the others")


def _source(path: Path, source: EnvFrom) -> rules.Errors:
    refs = {"configMapRef": source.config_map_ref, "secretRef": source.secret_ref}
    given = {field: ref for field, ref in refs.items() if ref is not None}
    if len(given) != 1:
        rule = "must have either configMapRef or secretRef"
        yield FieldError(path, INVALID, rule=rule, remedy="set exactly one of the two")
    for field, ref in given.items():
        if not ref.name:
            rule = "must name the object to read"
            yield rules.required((*path, field, "name"), rule, "add the object's name")
