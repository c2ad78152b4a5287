"""The schema of a type of ours, with what the words' tables add to it."""

from __future__ import annotations

from typing import Final

import msgspec

from mpi_trainer.api.kinds import mpijob
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.pods import PodTemplate
from tools.crds import jobsets, limits, podtemplate, trainwords, words
from tools.crds.podtemplate import QUANTITY, Schema

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
_LEAVES: Final[dict[tuple[type, str], Schema]] = {
    (mpijob.SchedulingPolicy, "minResources"): {
        "type": "object",
        "additionalProperties": QUANTITY,
    },
    (mpijob.ReplicaStatus, "labelSelector"): _SELECTOR,
}
_Nothing = msgspec.inspect.NoneType

DESCRIPTIONS: Final = {**words.DESCRIPTIONS, **trainwords.DESCRIPTIONS}
DEFAULTS: Final = {**words.DEFAULTS, **trainwords.DEFAULTS}
_KINDS: Final = {**words.KINDS, **trainwords.KINDS}
_VALUES: Final = {**words.VALUES, **trainwords.VALUES}
_REQUIRED: Final = {**words.REQUIRED, **trainwords.REQUIRED}
_MAP_KEYS: Final = {**words.MAP_KEYS, **trainwords.MAP_KEYS}


def struct(kind: type[msgspec.Struct]) -> Schema:
    properties = {}
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        schema = _leaf(kind, name) or _schema(msgspec.inspect.type_info(field.type))
        if name in _VALUES.get(kind, {}):
            schema = schema | {"enum": _VALUES[kind][name]}
        if name in DEFAULTS.get(kind, {}):
            schema = schema | {"default": DEFAULTS[kind][name]}
        schema = _limited(schema, limits.FIELDS.get((kind, name), {}))
        properties[name] = {"description": DESCRIPTIONS[kind][name], **schema}
    head = {"description": _KINDS[kind]} if kind in _KINDS else {}
    required = {"required": _REQUIRED[kind]} if kind in _REQUIRED else {}
    fields = {"properties": properties} if properties else {}
    return {**head, "type": "object", **required, **limits.STRUCTS.get(kind, {}), **fields}


def _limited(schema: Schema, limit: Schema) -> Schema:
    """`schema` within `limit`, whose `items` are merged rather than replaced."""
    items = {**schema.get("items", {}), **limit.get("items", {})}
    return {**schema, **limit, **({"items": items} if items else {})}


def _leaf(kind: type, name: str) -> Schema | None:
    """Fields whose types say less than the API does."""
    if (kind, name) in limits.POD_FIELDS:
        return limits.POD_FIELDS[kind, name]
    if (kind, name) == limits.JOBSET:
        return jobsets.stored()
    return _LEAVES.get((kind, name))


def _schema(info: msgspec.inspect.Type) -> Schema:
    """The schema of a field's type; None, which means "not set", is left out."""
    schema: Schema
    match info:
        case msgspec.inspect.UnionType():
            (only,) = (each for each in info.types if not isinstance(each, _Nothing))
            schema = _schema(only)
        case msgspec.inspect.StructType(cls=cls) if cls is ObjectMeta:
            schema = podtemplate.metadata()
        case msgspec.inspect.StructType():
            schema = struct(info.cls)
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


def _list(item: msgspec.inspect.Type) -> Schema:
    keys = _MAP_KEYS.get(item.cls, []) if isinstance(item, msgspec.inspect.StructType) else []
    merge = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys} if keys else {}
    return {"type": "array", "items": _schema(item), **merge}
