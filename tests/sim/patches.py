"""Patches as the API server applies them: merge (RFC 7396) and JSON (RFC 6902)."""

from __future__ import annotations

import copy
from typing import Any

from tests.sim.objects import Refusal


def merged(old: Any, change: Any) -> Any:
    """A merge patch, applied."""
    if not isinstance(change, dict):
        return copy.deepcopy(change)
    new = dict(old) if isinstance(old, dict) else {}
    for key, value in change.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = merged(new.get(key), value)
    return new


def patched(old: Any, steps: list[dict[str, Any]]) -> Any:
    """A JSON patch with add, replace, remove and test, applied."""
    new = copy.deepcopy(old)
    for step in steps:
        *path, last = (
            part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]
        )
        try:
            node = new
            for part in path:
                node = node[int(part) if isinstance(node, list) else part]
            _apply(node, last, step)
        except (KeyError, IndexError):
            raise Refusal(422, "Invalid", f"the path {step['path']} is not there") from None
    return new


def _apply(node: Any, last: str, step: dict[str, Any]) -> None:
    if isinstance(node, list):
        place = len(node) if last == "-" else int(last)
        if step["op"] == "add":
            node.insert(place, step["value"])
            return
        key: Any = place
    else:
        key = last
    if step["op"] == "test":
        if node[key] != step["value"]:
            raise Refusal(422, "Invalid", f"testing value {step['path']} failed")
    elif step["op"] == "remove":
        del node[key]
    else:
        if step["op"] == "replace":
            node[key]
        node[key] = step["value"]
