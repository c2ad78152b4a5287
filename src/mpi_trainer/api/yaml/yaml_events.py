"""YAML as a row of events, each with its line and column: what `documents` builds values from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

Kind = Literal["document", "scalar", "sequence", "mapping", "end", "alias"]


class YamlEvent(msgspec.Struct, frozen=True):
    """`plain`: a scalar without quotes, whose text decides its type. Lines count from 0."""

    kind: Kind
    line: int
    column: int
    value: str = ""
    plain: bool = False
    tag: str | None = None
    anchor: str | None = None


class Malformed(Exception):
    """The text is not YAML; where, and what the parser says about it."""

    def __init__(self, problem: str, line: int, column: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line
        self.column = column


def safe_loader() -> Any:
    """PyYAML's loader of plain data: libyaml's, or its own where libyaml was not built in.

    Imported late: the controller and the webhook read no YAML.
    """
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parsed(text: str) -> Iterator[YamlEvent]:
    """The events of every document; raises Malformed where they end before their time."""
    import yaml

    kinds: dict[type, Kind] = {
        yaml.DocumentStartEvent: "document",
        yaml.ScalarEvent: "scalar",
        yaml.SequenceStartEvent: "sequence",
        yaml.MappingStartEvent: "mapping",
        yaml.SequenceEndEvent: "end",
        yaml.MappingEndEvent: "end",
        yaml.AliasEvent: "alias",
    }
    loader = safe_loader()(text)
    try:
        while loader.check_event():
            event = loader.get_event()
            if type(event) in kinds:
                yield _event(kinds[type(event)], event)
    except yaml.MarkedYAMLError as error:
        problem = " ".join(part for part in (error.context, error.problem) if part)
        mark = error.problem_mark or error.context_mark
        if "end of stream" in problem and error.context_mark:
            mark = error.context_mark  # where it was opened says more than the end of the file
        raise Malformed(problem, *((mark.line, mark.column) if mark else (0, 0))) from None


def _event(kind: Kind, event: Any) -> YamlEvent:
    tag, anchor = getattr(event, "tag", None), getattr(event, "anchor", None)
    mark = event.start_mark
    if kind != "scalar":
        return YamlEvent(kind, mark.line, mark.column, tag=tag, anchor=anchor)
    plain = event.implicit[0] and tag != "!"
    return YamlEvent(kind, mark.line, mark.column, event.value, plain, tag, anchor)
