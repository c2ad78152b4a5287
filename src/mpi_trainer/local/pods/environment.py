"""A container's environment, worked out as a kubelet would: env, envFrom, valueFrom, `$(NAME)`.

Pure. Later entries win over earlier ones; a reference can use what stands before it. What the
machine sets under the container is out of a reference's reach, as an image's variables are on a
cluster: `$(PATH)` stays as it is in both places.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from mpi_trainer.api.kinds.pods import Container, EnvVar, KeyRef
from mpi_trainer.layout.model import Pairs
from mpi_trainer.local.errors import CannotApply

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")

Contents = Mapping[str, Mapping[str, bytes]]


class Materials(msgspec.Struct, frozen=True):
    """ConfigMaps and Secrets that came with the job file, by name and key."""

    config_maps: Contents = {}
    secrets: Contents = {}


class PodFacts(msgspec.Struct, frozen=True):
    """What a pod can read about itself (`fieldRef`)."""

    name: str
    namespace: str
    address: str
    node: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


def expanded(text: str, known: Mapping[str, str]) -> str:
    """`$(NAME)` replaced where NAME is known, left as it is where not; `$$` is a plain `$`."""

    def value(match: re.Match[str]) -> str:
        if match.group() == "$$":
            return "$"
        return known.get(match.group(1), match.group())

    return _REFERENCE.sub(value, text)


def environment(
    container: Container, base: Pairs, facts: PodFacts, materials: Materials
) -> dict[str, str]:
    """The variables of one container over `base`; raises CannotApply for what is missing."""
    env: dict[str, str] = {}
    for source in container.env_from:
        for kind, ref, held in (
            ("ConfigMap", source.config_map_ref, materials.config_maps),
            ("Secret", source.secret_ref, materials.secrets),
        ):
            if ref is None:
                continue
            found = held.get(ref.name)
            if found is None and not ref.optional:
                raise _missing(f"envFrom of container {container.name}", kind, ref.name)
            for key, content in sorted((found or {}).items()):
                env[source.prefix + key] = content.decode(errors="surrogateescape")
    for variable in container.env:
        value = _value(variable, env, facts, materials)
        if value is not None:
            env[variable.name] = value
    for name, value in env.items():
        if "\0" in value:
            raise CannotApply(
                f"env {name} of container {container.name}: no variable can hold a zero byte",
                "Mount the Secret or ConfigMap as a file in place of a variable.",
            )
    return {**dict(base), **env}


def _value(
    variable: EnvVar, env: Mapping[str, str], facts: PodFacts, materials: Materials
) -> str | None:
    source = variable.value_from
    if source is None:
        return expanded(variable.value or "", env)
    if source.field_ref is not None:
        return _field(source.field_ref.field_path, facts)
    for kind, ref, held in (
        ("ConfigMap", source.config_map_key_ref, materials.config_maps),
        ("Secret", source.secret_key_ref, materials.secrets),
    ):
        if ref is not None:
            return _key(variable.name, kind, ref, held)
    return None


def _key(variable: str, kind: str, ref: KeyRef, held: Contents) -> str | None:
    content = held.get(ref.name, {}).get(ref.key)
    if content is not None:
        return content.decode(errors="surrogateescape")
    if ref.optional:
        return None
    raise _missing(f"env {variable}", kind, f"{ref.name} with the key {ref.key}")


def _field(path: str, facts: PodFacts) -> str:
    simple = {
        "metadata.name": facts.name,
        "metadata.namespace": facts.namespace,
        "metadata.uid": facts.name,
        "spec.nodeName": facts.node,
        "spec.serviceAccountName": "default",
        "status.hostIP": facts.address,
        "status.hostIPs": facts.address,
        "status.podIP": facts.address,
        "status.podIPs": facts.address,
    }
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript:
        kind, key = subscript.groups()
        return (facts.labels if kind == "labels" else facts.annotations).get(key, "")
    if path in simple:
        return simple[path]
    raise CannotApply(
        f"fieldRef {path}: a pod has no such field to read",
        f"Use one of {', '.join(sorted(simple))}, metadata.labels['…'], metadata.annotations['…'].",
    )


def _missing(where: str, kind: str, what: str) -> CannotApply:
    return CannotApply(
        f"{where}: there is no {kind} {what} in the job file",
        f"Put the {kind} into the same file as another document (`---`), or mark it optional.",
    )
