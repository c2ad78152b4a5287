"""A small, honest part of kubectl's jsonpath: fields, indices, `[*]`, quoted keys, text between.

    {.metadata.name}   {.items[*].name}   {.items[-1].state}   {.metadata.labels['a.b/c']}

Filters, ranges, slices and `..` are refused with an error that says so, never misunderstood.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_TOKEN = re.compile(
    r"\.(?P<field>[A-Za-z_][\w-]*)"
    r"|\[(?P<index>-?\d{1,9})\]"
    r"|\[(?P<quote>['\"])(?P<key>(?:(?!(?P=quote)).)*)(?P=quote)\]"
    r"|(?P<every>\[\*\]|\.\*)"
)


class BadPath(ValueError):
    """The expression is wrong or beyond what is understood here."""


class Path:
    """One `{…}` expression, compiled."""

    def __init__(self, text: str) -> None:
        self._steps = tuple(_steps(text))

    @property
    def field(self) -> str:
        """The field of the object that it begins with; empty where it begins with none."""
        first = self._steps[0] if self._steps else None
        return first if isinstance(first, str) else ""

    def values(self, data: Any) -> list[Any]:
        """Everything the path leads to; nothing where a field is missing."""
        found = [data]
        for step in self._steps:
            found = [value for each in found for value in _followed(each, step)]
        return found


class Template:
    """Text with `{…}` in it; a bare path without braces is taken as one expression."""

    def __init__(self, text: str) -> None:
        self._parts = tuple(_parts(text if "{" in text else "{" + text + "}"))

    def filled(self, data: Any) -> str:
        return "".join(
            part if isinstance(part, str) else " ".join(map(shown, part.values(data)))
            for part in self._parts
        )


def _parts(text: str) -> Iterator[str | Path]:
    rest = text
    while rest:
        before, brace, after = rest.partition("{")
        if before:
            yield before.replace(r"\n", "\n").replace(r"\t", "\t")
        if not brace:
            return
        inside, brace, rest = _closed(after)
        if not brace:
            raise BadPath(f"{text!r}: a `{{` is never closed")
        literal = re.fullmatch(r"\s*\"((?:[^\"\\]|\\.)*)\"\s*", inside)
        if literal:
            yield literal[1].replace(r"\n", "\n").replace(r"\t", "\t").replace(r"\"", '"')
        else:
            yield Path(inside.strip())


def _closed(text: str) -> tuple[str, str, str]:
    """Up to the closing brace, which may also stand inside quotes."""
    quote = ""
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "}":
            return text[:place], "}", text[place + 1 :]
    return text, "", ""


def _steps(text: str) -> Iterator[str | int | None]:
    path = text.removeprefix("$").removeprefix("@")
    if path and path[0] not in ".[":
        path = "." + path
    if path in ("", "."):
        return
    place = 0
    while place < len(path):
        match = _TOKEN.match(path, place)
        if match is None:
            raise BadPath(
                f"{text!r}: {path[place:]!r} is not understood; fields, [N], [*] and ['key'] are"
            )
        if match["every"]:
            yield None
        elif match["index"] is not None:
            yield int(match["index"])
        else:
            yield match["field"] if match["field"] is not None else match["key"]
        place = match.end()


def _followed(value: Any, step: str | int | None) -> list[Any]:
    if step is None:
        if isinstance(value, dict):
            return list(value.values())
        return list(value) if isinstance(value, (list, tuple)) else []
    if isinstance(step, int):
        inside = isinstance(value, (list, tuple)) and -len(value) <= step < len(value)
        return [value[step]] if inside else []
    return [value[step]] if isinstance(value, dict) and step in value else []


def shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
