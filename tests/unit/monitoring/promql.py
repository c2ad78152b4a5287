"""Just enough PromQL to name a query's metrics and labels; whether it parses, promtool says."""

from __future__ import annotations

import re
from collections.abc import Iterator

_STRING = re.compile(r'"[^"]*"')
_RANGE = re.compile(r"\[[^\]]*\]")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_SELECTOR = re.compile(r"\b([a-zA-Z_:][\w:]*)\b(?!\s*\()(?:\{([^}]*)\})?")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_WORDS = frozenset({"and", "bool", "offset", "or", "unless"})


def selectors(query: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Each metric that is read, and the labels that it is chosen by."""
    bare = _GROUPING.sub("", _RANGE.sub("", _STRING.sub('""', query)))
    for name, matchers in _SELECTOR.findall(bare):
        if name not in _WORDS:
            yield name, frozenset(_MATCHER.findall(matchers))


def grouped(query: str) -> frozenset[str]:
    """The labels that a query sums or joins by."""
    groups = _GROUPING.findall(_STRING.sub('""', query))
    return frozenset(name.strip() for group in groups for name in group.split(",") if name.strip())


def filled(query: str) -> str:
    """With what Grafana puts in place of its variables."""
    given = {"$__rate_interval": "5m", "$namespace": "team", "$mpijob": "train"}
    for variable, value in given.items():
        query = query.replace(variable, value)
    return query
