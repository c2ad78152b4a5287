"""MPIJob's CustomResourceDefinition, from our types.

One served and stored version, `v2beta1`, with the status subresource. Small enough (the API server
copies what is applied into an annotation of at most 256 KiB) for a plain `kubectl apply`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import yaml

from mpi_trainer.api import mpijob
from mpi_trainer.api.pods import PodTemplate
from tools.crds import podtemplate, words
from tools.crds.podtemplate import QUANTITY, Schema

_HEADER: Final = """\
# Made by `make manifests`; do not edit. The fields are src/mpi_trainer/api/mpijob.py's, the words
# tools/crds/words.py's, and the pods tools/crds/podtemplate.json's, from an API server.
"""
_SELECTOR: Final[Schema] = {
    "type": "object",
    "x-kubernetes-map-type": "atomic",
    "properties": {
        "matchExpressions": {
            "type": "array",
            "x-kubernetes-list-type": "atomic",
            "items": {
                "type": "object",
                "required": ["key", "operator"],
                "properties": {
                    "key": {"type": "string"},
                    "operator": {"type": "string"},
                    "values": {
                        "type": "array",
                        "items": {"type": "string"},
                        "x-kubernetes-list-type": "atomic",
                    },
                },
            },
        },
        "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
_COLUMNS: Final = (
    ("State", "string", ".status.conditions[-1:].type", 0, "Where the job stands."),
    ("Workers", "integer", ".spec.mpiReplicaSpecs.Worker.replicas", 0, "Workers that are wanted."),
    ("Active", "integer", ".status.replicaStatuses.Worker.active", 0, "Workers that run."),
    ("Slots", "integer", ".spec.slotsPerWorker", 1, "Ranks on each worker."),
    ("MPI", "string", ".spec.mpiImplementation", 1, "The MPI implementation."),
    ("Finished", "date", ".status.completionTime", 1, "How long ago the job ended."),
    ("Why", "string", ".status.conditions[-1:].message", 1, "What happened last."),
    ("Age", "date", ".metadata.creationTimestamp", 0, "How long ago the job was created."),
)


def text() -> str:
    """The definition as the file that is committed."""
    return _HEADER + yaml.safe_dump(
        definition(), sort_keys=False, width=200, default_flow_style=None
    )


def definition() -> dict[str, Any]:
    """The definition, ready to apply."""
    group, _, version = mpijob.API_VERSION.partition("/")
    plural = mpijob.KIND.lower() + "s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {
                "kind": mpijob.KIND,
                "listKind": f"{mpijob.KIND}List",
                "plural": plural,
                "singular": mpijob.KIND.lower(),
                "shortNames": ["mj"],
                "categories": ["all", "kubeflow"],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [_column(*each) for each in _COLUMNS],
                    "schema": {"openAPIV3Schema": _root()},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def _column(name: str, kind: str, path: str, priority: int, description: str) -> dict[str, Any]:
    column = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return column | ({"priority": priority} if priority else {})


def _root() -> Schema:
    return {
        "type": "object",
        "description": "A training job of MPI processes: one launcher, and workers that it reaches "
        "over SSH.",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": _struct(mpijob.MPIJobSpec),
            "status": _struct(mpijob.JobStatus),
        },
    }


def _struct(kind: type[msgspec.Struct]) -> Schema:
    properties = {}
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        schema = _LEAVES.get((kind, name)) or _schema(msgspec.inspect.type_info(field.type))
        if name in words.VALUES.get(kind, {}):
            schema = schema | {"enum": words.VALUES[kind][name]}
        if name in words.DEFAULTS.get(kind, {}):
            schema = schema | {"default": words.DEFAULTS[kind][name]}
        properties[name] = {"description": words.DESCRIPTIONS[kind][name], **schema}
    head = {"description": words.KINDS[kind]} if kind in words.KINDS else {}
    required = {"required": words.REQUIRED[kind]} if kind in words.REQUIRED else {}
    return {**head, "type": "object", **required, "properties": properties}


_LEAVES: Final[dict[tuple[type, str], Schema]] = {
    (mpijob.SchedulingPolicy, "minResources"): {
        "type": "object",
        "additionalProperties": QUANTITY,
    },
    (mpijob.ReplicaStatus, "labelSelector"): _SELECTOR,
}
"""fields whose types say less than the API does"""


def _schema(info: msgspec.inspect.Type) -> Schema:
    """The schema of a field's type; None, which means "not set", is left out."""
    schema: Schema
    match info:
        case msgspec.inspect.UnionType():
            (only,) = (each for each in info.types if not isinstance(each, _Nothing))
            schema = _schema(only)
        case msgspec.inspect.StructType():
            schema = _struct(info.cls)
        case msgspec.inspect.DictType():
            schema = {"type": "object", "additionalProperties": _schema(info.value_type)}
        case msgspec.inspect.VarTupleType():
            schema = _list(info.item_type)
        case msgspec.inspect.CustomType(cls=cls) if cls is PodTemplate:
            schema = podtemplate.stored()
        case _:
            schema = _scalar(info)
    return schema


def _scalar(info: msgspec.inspect.Type) -> Schema:
    match info:
        case msgspec.inspect.IntType():
            return {"type": "integer", "format": "int64" if (info.le or 0) > 2**31 else "int32"}
        case msgspec.inspect.StrType():
            return {"type": "string"}
        case msgspec.inspect.BoolType():
            return {"type": "boolean"}
        case msgspec.inspect.DateTimeType():
            return {"type": "string", "format": "date-time"}
    raise TypeError(f"no schema for {info}; teach {__name__} about it")


_Nothing = msgspec.inspect.NoneType


def _list(item: msgspec.inspect.Type) -> Schema:
    keys = words.MAP_KEYS.get(item.cls, []) if isinstance(item, msgspec.inspect.StructType) else []
    merge = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys} if keys else {}
    return {"type": "array", "items": _schema(item), **merge}
