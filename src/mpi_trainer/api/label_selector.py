"""Label selectors as kubectl writes them: `team=a,tier in (dev, test),!old`. Pure.

As on a cluster, `!=` and `notin` also take what does not have the label at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from mpi_trainer.api import names

FORMS = "KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY and !KEY, separated by commas"


class BadSelector(ValueError):
    """The text is no label selector; says where and what is expected."""


class Requirement(msgspec.Struct, frozen=True):
    """`values` None asks only whether there is such a label; `negated` turns it round."""

    key: str
    values: frozenset[str] | None = None
    negated: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.values is None:
            return (self.key in labels) is not self.negated
        return (labels.get(self.key) in self.values) is not self.negated


class Selector(msgspec.Struct, frozen=True):
    """All requirements must hold; without any, everything matches."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(one.matches(labels) for one in self.requirements)


def parse(text: str) -> Selector:
    """The selector that `text` writes; BadSelector where it writes none."""
    return Selector(tuple(_requirement(term) for term in _terms(text)))


def _terms(text: str) -> Iterator[str]:
    """The parts between commas, but not those between parentheses."""
    begin, inside = 0, False
    for place, letter in enumerate(text):
        if letter == "(":
            inside = True
        elif letter == ")":
            inside = False
        elif letter == "," and not inside:
            yield text[begin:place].strip()
            begin = place + 1
    if text.strip():
        yield text[begin:].strip()


def _requirement(term: str) -> Requirement:
    if term.startswith("!") and "=" not in term:
        return Requirement(_key(term[1:].strip(), term), negated=True)
    for sign in ("!=", "==", "="):
        key, found, value = term.partition(sign)
        if found:
            values = frozenset({_value(value.strip(), term)})
            return Requirement(_key(key.strip(), term), values, negated=sign == "!=")
    if "(" in term or ")" in term:
        return _set(term)
    return Requirement(_key(term, term))


def _set(term: str) -> Requirement:
    head, _, rest = term.partition("(")
    inside, closed, after = rest.partition(")")
    words = head.split()
    if len(words) != 2 or words[1] not in ("in", "notin") or not closed or after:
        raise BadSelector(f"{term!r} is not a label selector; write {FORMS}")
    values = frozenset(_value(value.strip(), term) for value in inside.split(","))
    return Requirement(_key(words[0], term), values, negated=words[1] == "notin")


def _key(key: str, term: str) -> str:
    if not key or any(letter.isspace() or letter in "<>()" for letter in key):
        raise BadSelector(f"{term!r} is not a label selector; write {FORMS}")
    fault = names.qualified(key)
    if fault is not None:
        raise BadSelector(f"{term!r}: the label key `{key}` {fault.rule}")
    return key


def _value(value: str, term: str) -> str:
    fault = names.label_value(value)
    if fault is not None:
        raise BadSelector(f"{term!r}: the label value `{value}` {fault.rule}")
    return value
