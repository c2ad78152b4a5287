"""Small changes of a spec that undo what a conversion did; as they stand in an annotation.

Guarantee: an edit that does not fit the spec changes nothing, and nothing given is changed in
place; what an edit does not touch is shared. Danger: whoever may write the object writes these
too, so the result counts only where it converts to what stands in the open (see `convert`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec

from mpi_trainer.api.yaml import nesting

LARGEST: Final = 16 * 1024
"""bytes of all edits of one object as JSON: a tenth of what Kubernetes takes of annotations"""
MOST: Final = 32
"""edits of one object; each is tried alone where all together do not fit"""
_DEEPEST = 40
_LONGEST_PATH = 16

Object = dict[str, Any]
Step = str | int


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`set` and `unset` a field, `insert` an item before the one at the path, or `move` the first
    item of a list to `to`."""

    op: Literal["set", "unset", "insert", "move"]
    path: tuple[Step, ...]
    value: Any = None
    to: int = 0


Group = tuple[Edit, ...]
"""edits that undo one rule, and have no meaning apart"""


class Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What v2beta1 has no field for, of an object that was `version` before: the edits that bring
    it back, the last one done first; or spec and status as they were."""

    version: str = msgspec.field(name="from")
    undo: tuple[Group, ...] = ()
    spec: Object | None = None
    status: Object | None = None


def encoded(kept: Kept) -> str:
    return msgspec.json.encode(kept).decode()


def decoded(text: str) -> Kept | None:
    """None where the text is not what `encoded` writes, or goes beyond its bounds."""
    data = text.encode("utf-8", "replace")
    if len(data) > LARGEST or nesting.depth(data) > _DEEPEST:
        return None
    try:
        kept = msgspec.json.decode(data, type=Kept)
    except (msgspec.MsgspecError, RecursionError):
        return None
    edits = [edit for group in kept.undo for edit in group]
    sound = all(0 < len(edit.path) <= _LONGEST_PATH for edit in edits)
    return kept if len(edits) <= MOST and sound else None


def applied(spec: Any, group: Group) -> Any:
    """None where one of the edits does not fit."""
    for edit in group:
        spec = _changed(spec, edit.path, lambda at, edit=edit: _acted(at, edit))  # type: ignore[misc]
        if spec is None:
            return None
    return spec


def _acted(at: Any, edit: Edit) -> Any:
    """The last container on the path, changed; None where that cannot be."""
    last = edit.path[-1]
    if edit.op in ("set", "unset"):
        if not isinstance(at, Mapping) or not isinstance(last, str):
            return None
        rest = {key: value for key, value in at.items() if key != last}
        return {**rest, last: edit.value} if edit.op == "set" else rest
    if edit.op == "move":
        items = at.get(last) if isinstance(at, Mapping) and isinstance(last, str) else None
        if not isinstance(items, list) or not 0 <= edit.to < len(items):
            return None
        rest_items = items[1:]
        return {**at, last: [*rest_items[: edit.to], items[0], *rest_items[edit.to :]]}
    if not isinstance(at, list) or not isinstance(last, int) or not 0 <= last <= len(at):
        return None
    return [*at[:last], edit.value, *at[last:]]


def _changed(value: Any, path: tuple[Step, ...], act: Callable[[Any], Any]) -> Any:
    if len(path) == 1:
        return act(value)
    step, rest = path[0], path[1:]
    if isinstance(value, Mapping) and isinstance(step, str) and step in value:
        inner = _changed(value[step], rest, act)
        return None if inner is None else {**value, step: inner}
    if isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
        inner = _changed(value[step], rest, act)
        return None if inner is None else [*value[:step], inner, *value[step + 1 :]]
    return None
