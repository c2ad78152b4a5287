"""The container of a pod that runs the job; the others are its user's own business."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def main_container(spec: Object, name: str = "") -> Object:
    """That of the name, else the first; it may be changed in place."""
    containers: list[Object] = spec["containers"]
    return next((one for one in containers if name and one.get("name") == name), containers[0])
