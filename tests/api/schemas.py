"""A CustomResourceDefinition's schema as a flat list of nodes, to compare two of them."""

from __future__ import annotations

from tests.cluster import Object


def nodes(crd: Object) -> dict[str, Object]:
    found: dict[str, Object] = {}

    def walk(schema: Object, path: str) -> None:
        found[path] = schema
        for name, child in schema.get("properties", {}).items():
            walk(child, f"{path}.{name}")
        if "items" in schema:
            walk(schema["items"], f"{path}[]")
        if "additionalProperties" in schema:
            walk(schema["additionalProperties"], path + "{}")

    walk(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "")
    return found


def checked(schema: Object) -> Object:
    """What the API server checks or fills in; not how it merges or explains."""
    ignored = (
        "properties",
        "items",
        "additionalProperties",
        "description",
        "x-kubernetes-map-type",
    )
    kept = {key: value for key, value in schema.items() if key not in ignored}
    return kept | ({"required": sorted(kept["required"])} if "required" in kept else {})
