"""YAML or JSON text as plain data that remembers where each field was written.

Guarantee: `parse` either returns mappings with string keys and finite values, or raises
`InvalidJob` that names line, column and remedy; nothing else. Input size, depth and the number of
nodes after alias expansion are bounded, so a small file cannot grow into a large value.
Unlike kubectl we refuse a key written twice and a key that is not a string (`on:` is `true:`).
Danger: aliased parts of `data` are shared, not copied; never change them in place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mpi_trainer.api.errors import (
    DUPLICATE,
    SYNTAX,
    FieldError,
    InvalidJob,
    Path,
    Position,
    kind_of,
)
from mpi_trainer.api.yaml import scalars
from mpi_trainer.api.yaml.yaml_events import Malformed, YamlEvent, parsed

MAX_SIZE = 4 * 1024 * 1024
MAX_NODES = 200_000
MAX_DEPTH = 100

_UNPRINTABLE = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_TEMPLATE = re.compile(r"\{[{%]")
_SPACE = dict.fromkeys(map(ord, "\t\n\r"))
_CORE = "tag:yaml.org,2002:"
_SCALAR_TAGS = frozenset(_CORE + name for name in ("int", "float", "bool", "null", "timestamp"))
_QUOTE = "put it in quotes"
_LISTS = ("List", "MPIJobList", "TrainJobList")


class Node(msgspec.Struct, frozen=True):
    """A value and where it stands; `parts` holds what is inside it."""

    value: Any
    line: int
    column: int
    size: int
    depth: int
    parts: Mapping[str | int, tuple[int, int, Node]] = {}


class Document(msgspec.Struct, frozen=True):
    source: str
    data: Mapping[str, Any]
    positions: Node

    def position(self, path: Path) -> Position:
        """Where the field was written: its key or list item, else the nearest part around it."""
        node, line, column = self.positions, self.positions.line, self.positions.column
        for part in path:
            found = node.parts.get(part)
            if found is None:
                break
            line, column, node = found
        return Position(self.source, line + 1, column + 1)


def parse(text: str, source: str) -> tuple[Document, ...]:
    """Every document that is not empty, in order."""
    _check_text(text, source)
    try:
        roots = list(_Composer(parsed(text), source).documents())
    except Malformed as error:
        raise InvalidJob([_unless_template(_syntax_error(error, text, source), text)]) from None
    except InvalidJob as error:
        raise InvalidJob(_unless_template(one, text) for one in error.errors) from None
    roots = [root for root in roots if root.value is not None]
    if not roots:
        raise _refuse(source, 0, 0, "the file holds no document", "write an MPIJob in it")
    for root in roots:
        if not isinstance(root.value, dict):
            rule = f"a document must be a mapping, and this one is {kind_of(root.value)}"
            remedy = "start it with `apiVersion:` and `kind:` at the left margin"
            raise _refuse(source, root.line, root.column, rule, remedy)
    return tuple(Document(source, root.value, root) for root in roots)


def items(document: Document) -> list[Document]:
    """What a `List` holds, as `kubectl get -o yaml` prints one, or one of jobs, as an API server
    answers; any other document by itself."""
    listed = document.data.get("items")
    if document.data.get("kind") not in _LISTS or not isinstance(listed, list):
        return [document]
    _, _, place = document.positions.parts["items"]
    return [
        Document(document.source, item if isinstance(item, Mapping) else {}, place.parts[n][2])
        for n, item in enumerate(listed)
    ]


class _Composer:
    """Builds nodes from events. One pass, one instance."""

    def __init__(self, events: Iterator[YamlEvent], source: str) -> None:
        self._events = events
        self._source = source
        self._anchors: dict[str, Node] = {}
        self._total = 0

    def documents(self) -> Iterator[Node]:
        for _document in self._events:
            self._anchors = {}
            yield self._node(next(self._events), 1)

    def _node(self, event: YamlEvent, depth: int) -> Node:
        if depth > MAX_DEPTH:
            remedy = f"nest at most {MAX_DEPTH} levels"
            raise self._error(event, "the document is nested too deeply", remedy)
        if event.kind == "alias":
            return self._alias(event, depth)
        self._count(event, 1)
        if event.kind == "scalar":
            node = self._scalar(event)
        elif event.kind == "sequence":
            self._check_tag(event, "seq")
            node = self._sequence(event, depth)
        else:
            self._check_tag(event, "map")
            node = self._mapping(event, depth)
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: YamlEvent, depth: int) -> Node:
        node = self._anchors.get(event.anchor or "")
        if node is None:
            rule = f"the alias *{event.anchor} has no finished anchor before it"
            raise self._error(event, rule, f"write &{event.anchor} at an earlier value")
        if depth + node.depth > MAX_DEPTH:
            remedy = f"nest at most {MAX_DEPTH} levels"
            raise self._error(event, "the document is nested too deeply", remedy)
        self._count(event, node.size)
        return node

    def _count(self, event: YamlEvent, nodes: int) -> None:
        self._total += nodes
        if self._total > MAX_NODES:
            rule = f"the file expands to more than {MAX_NODES} values"
            raise self._error(event, rule, "use fewer aliases or a smaller file")

    def _scalar(self, event: YamlEvent) -> Node:
        value: scalars.Scalar = event.value
        if event.plain or event.tag in _SCALAR_TAGS:
            try:
                value = scalars.plain(event.value)
            except ValueError as error:
                raise self._error(event, str(error), f"{_QUOTE} if it is text") from None
        else:
            self._check_tag(event, "str")
        return Node(value, event.line, event.column, 1, 1)

    def _check_tag(self, event: YamlEvent, name: str) -> None:
        if event.tag not in (None, "!", _CORE + name):
            shown = event.tag.replace(_CORE, "!!")
            raise self._error(event, f"the tag {shown} is not allowed here", "remove the tag")

    def _sequence(self, start: YamlEvent, depth: int) -> Node:
        parts: dict[str | int, tuple[int, int, Node]] = {}
        event = next(self._events)
        while event.kind != "end":
            parts[len(parts)] = (event.line, event.column, self._node(event, depth + 1))
            event = next(self._events)
        return _branch(start, [part[2].value for part in parts.values()], parts)

    def _mapping(self, start: YamlEvent, depth: int) -> Node:
        own: dict[str | int, tuple[int, int, Node]] = {}
        merged: dict[str | int, tuple[int, int, Node]] = {}
        event = next(self._events)
        while event.kind != "end":
            key = self._node(event, depth + 1)
            node = self._node(next(self._events), depth + 1)
            if key.value == "<<" and event.plain:
                merged = {**self._merge(event, node), **merged}
            else:
                name = self._key(event, key.value, own)
                own[name] = (event.line, event.column, node)
            event = next(self._events)
        parts = {**merged, **own}
        return _branch(start, {name: part[2].value for name, part in parts.items()}, parts)

    def _key(self, event: YamlEvent, key: object, taken: Mapping[str | int, object]) -> str:
        if not isinstance(key, str):
            rule = f"a key must be a string, and this one is {kind_of(key)}"
            raise self._error(event, rule, _QUOTE)
        if key in taken:
            rule = f"the key `{key}` occurs twice in one mapping"
            raise self._error(event, rule, "keep one of the two", DUPLICATE)
        return key

    def _merge(self, event: YamlEvent, node: Node) -> dict[str | int, tuple[int, int, Node]]:
        listed = isinstance(node.value, list)
        sources = [part[2] for part in node.parts.values()] if listed else [node]
        parts: dict[str | int, tuple[int, int, Node]] = {}
        for source in reversed(sources):
            if not isinstance(source.value, dict):
                rule = f"<< merges mappings, and this is {kind_of(source.value)}"
                raise self._error(event, rule, "give it an alias of a mapping, such as `<<: *base`")
            parts.update(source.parts)
        return parts

    def _error(self, event: YamlEvent, rule: str, remedy: str, problem: str = SYNTAX) -> InvalidJob:
        return _refuse(self._source, event.line, event.column, rule, remedy, problem)


def _branch(start: YamlEvent, value: Any, parts: Mapping[str | int, tuple[int, int, Node]]) -> Node:
    inside = [part[2] for part in parts.values()]
    size = 1 + sum(node.size for node in inside)
    depth = 1 + max((node.depth for node in inside), default=0)
    return Node(value, start.line, start.column, size, depth, parts)


def _refuse(
    source: str, line: int, column: int, rule: str, remedy: str, problem: str = SYNTAX
) -> InvalidJob:
    place = Position(source, line + 1, column + 1)
    return InvalidJob([FieldError((), problem, rule=rule, remedy=remedy, position=place)])


def _check_text(text: str, source: str) -> None:
    if len(text) > MAX_SIZE:
        rule = f"the file is larger than {MAX_SIZE // 1024 // 1024} MiB"
        raise _refuse(source, 0, 0, rule, "split it, or move data into volumes")
    if text.isascii() and text.translate(_SPACE).isprintable():
        return
    bad = re.search(_UNPRINTABLE, text.removeprefix("\ufeff"))
    if bad:
        before = text.removeprefix("\ufeff")[: bad.start()]
        line, column = before.count("\n"), len(before) - before.rfind("\n") - 1
        rule = f"the character U+{ord(bad.group()):04X} is not allowed in YAML"
        raise _refuse(source, line, column, rule, "remove it; is this really a text file?")


def _unless_template(error: FieldError, text: str) -> FieldError:
    """What Helm and its like would have replaced is told as such, not as what YAML sees in it."""
    if error.position is None:
        return error
    lines, n = text.split("\n"), error.position.line
    # Of a line that is nothing but a mark, YAML complains at the next one.
    before = "".join(lines[n - 2 : n - 1]).lstrip()
    mark = _TEMPLATE.search("".join(lines[n - 1 : n])) or _TEMPLATE.match(before)
    if mark is None:
        return error
    rule = f"`{mark.group()}` is of a template that was not rendered"
    remedy = "render it first, for example with `helm template`"
    return msgspec.structs.replace(error, rule=rule, remedy=remedy)


_REMEDIES = (
    ("mapping values are not allowed", "check the indentation, and quote text that contains `: `"),
    ("unexpected end of stream", "close the quote or bracket that is open here"),
    ("could not find expected ':'", "write `key: value`"),
    ("did not find expected key", "align this line with its neighbours"),
    ("did not find expected '-'", "align this line with the list items above"),
)


def _syntax_error(error: Malformed, text: str, source: str) -> FieldError:
    lines = text.split("\n")
    if error.line < len(lines) and "\t" in lines[error.line][: error.column + 1]:
        rule, remedy = "a tab is used for indentation", "use spaces"
    else:
        fitting = (remedy for part, remedy in _REMEDIES if part in error.problem)
        rule, remedy = error.problem, next(fitting, "check quotes, brackets and indentation here")
    place = Position(source, error.line + 1, error.column + 1)
    return FieldError((), SYNTAX, rule=rule, remedy=remedy, position=place)
