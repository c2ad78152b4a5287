"""The pod template's structure, as an API server publishes it, made fit for a CRD.

`structural` keeps the fields, their types, what is required and how lists merge; it drops
descriptions (they alone are half a megabyte) and lists of allowed values, which belong to
the pod API of the cluster in use and grow with it. The pod spec keeps fields that this schema does
not know, for clusters newer than it; deeper down an unknown field is a typing error, and refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

Schema = dict[str, Any]

STORED: Final = Path(__file__).with_name("podtemplate.json")
_TEMPLATE: Final = "io.k8s.api.core.v1.PodTemplateSpec"
_METADATA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_KEPT: Final = (
    "type",
    "format",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)
_EITHER: Final = [{"type": "integer"}, {"type": "string"}]
QUANTITY: Final[Schema] = {
    "anyOf": _EITHER,
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    "x-kubernetes-int-or-string": True,
}
_LEAVES: Final[Mapping[str, Schema]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "anyOf": _EITHER,
        "x-kubernetes-int-or-string": True,
    },
    _METADATA: {
        "type": "object",
        "properties": {
            "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
            # Programs that print Go values write it as null.
            "creationTimestamp": {"type": "string", "format": "date-time", "nullable": True},
            "finalizers": {"type": "array", "items": {"type": "string"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "name": {"type": "string"},
            "namespace": {"type": "string"},
        },
    },
}


def structural(openapi: Mapping[str, Any]) -> Schema:
    """The pod template as a structural schema, out of an API server's `/openapi/v3/api/v1`."""
    schemas: Mapping[str, Schema] = openapi["components"]["schemas"]
    template = _inlined({"$ref": _TEMPLATE}, schemas)
    template["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"] = True
    return template


def stored() -> Schema:
    """The structure that is kept beside this file."""
    schema: Schema = json.loads(STORED.read_text())["schema"]
    return schema


def metadata() -> Schema:
    """The metadata of a template."""
    return json.loads(json.dumps(_LEAVES[_METADATA]))  # type: ignore[no-any-return]


def _inlined(node: Schema, schemas: Mapping[str, Schema]) -> Schema:
    """`node` with every reference in place of its target. The pod API holds no cycle."""
    while "$ref" in node or "allOf" in node:
        name = (node.get("$ref") or node["allOf"][0]["$ref"]).rpartition("/")[2]
        if name in _LEAVES:
            return json.loads(json.dumps(_LEAVES[name]))  # type: ignore[no-any-return]
        node = schemas[name]
    kept: Schema = {key: node[key] for key in _KEPT if key in node}
    for key in ("items", "additionalProperties"):
        if key in node:
            kept[key] = _inlined(node[key], schemas)
    if "properties" in node:
        required = node.get("required", ())
        kept["properties"] = {
            name: _inlined(child, schemas) | _default(child, name in required)
            for name, child in sorted(node["properties"].items())
        }
    return kept


def _default(child: Schema, required: bool) -> Schema:
    """What the API promises where nothing is said; Go's own zero of a required field is noise."""
    default = child.get("default")
    return {} if required or default is None or default == {} else {"default": default}
