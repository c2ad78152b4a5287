"""Writes docs/openapi.json, and refuses to where it would break the programs of others.

    python -m tools.openapi                 from the server's own types
    python -m tools.openapi --breaking      also where something is taken away or changed

What may be done: a new path, a parameter that need not be given, another field of an answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mpi_trainer.server.openapi import document

FILE: Final = Path(__file__).parents[1] / "docs" / "openapi.json"
Object = Mapping[str, Any]


def text(made: Object) -> str:
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def breaking(old: Object, new: Object) -> list[str]:
    """What a program that was written for `old` would trip over in `new`."""
    return [*Comparison(old, new).sentences()]


class Comparison:
    def __init__(self, old: Object, new: Object) -> None:
        self._old, self._new = old, new

    def sentences(self) -> Iterator[str]:
        for path, operations in self._old["paths"].items():
            for method, old in operations.items():
                place = f"{method.upper()} {path}"
                new = self._new["paths"].get(path, {}).get(method)
                if new is None:
                    yield f"{place}: is gone"
                else:
                    yield from self._parameters(old, new, place)
                    yield from self._bodies(old, new, place)
                    yield from self._answers(old, new, place)

    def _parameters(self, old: Object, new: Object, place: str) -> Iterator[str]:
        before = {(one["in"], one["name"]): one for one in old["parameters"]}
        after = {(one["in"], one["name"]): one for one in new["parameters"]}
        for name in before.keys() - after.keys():
            yield f"{place}: parameter {name[1]} is gone"
        for name, one in after.items():
            if name in before:
                schemas = before[name]["schema"], one["schema"]
                yield from self._schema(*schemas, f"{place}: parameter {name[1]}", sent=True)
            elif one.get("required"):
                yield f"{place}: parameter {name[1]} is new and required"

    def _bodies(self, old: Object, new: Object, place: str) -> Iterator[str]:
        before, after = old.get("requestBody"), new.get("requestBody")
        if before is None and after is not None and after.get("required"):
            yield f"{place}: a body is required"
        if before is not None and after is not None:
            contents = before["content"], after["content"]
            yield from self._contents(*contents, f"{place}: body", sent=True)

    def _answers(self, old: Object, new: Object, place: str) -> Iterator[str]:
        for status, before in old["responses"].items():
            after = new["responses"].get(status)
            if after is None:
                yield f"{place}: answer {status} is gone"
                continue
            contents = before.get("content", {}), after.get("content", {})
            yield from self._contents(*contents, f"{place}: answer {status}", sent=False)

    def _contents(self, old: Object, new: Object, place: str, *, sent: bool) -> Iterator[str]:
        for kind, before in old.items():
            if kind in new:
                yield from self._schema(before["schema"], new[kind]["schema"], place, sent=sent)
            else:
                yield f"{place}: {kind} is gone"

    def _schema(self, old: Object, new: Object, place: str, *, sent: bool) -> Iterator[str]:
        """`sent` by callers, who may always leave out; else answered, where nothing may go."""
        old, new = _resolved(old, self._old), _resolved(new, self._new)
        if old.get("type") != new.get("type"):
            yield f"{place}: type {old.get('type')} became {new.get('type')}"
            return
        yield from _values(old, new, place, sent=sent)
        choices = old.get("anyOf", []), new.get("anyOf", [])
        if len(choices[0]) != len(choices[1]):
            yield f"{place}: can have other types"
        else:
            for before, after in zip(*choices, strict=True):
                yield from self._schema(before, after, place, sent=sent)
        fields, others = old.get("properties", {}), new.get("properties", {})
        for name, before in fields.items():
            if name in others:
                yield from self._schema(before, others[name], f"{place}.{name}", sent=sent)
            else:
                yield f"{place}.{name}: is gone"
        needed = set(old.get("required", ())), set(new.get("required", ()))
        for name in sorted(needed[1] - needed[0] if sent else needed[0] - needed[1]):
            yield f"{place}.{name}: {'is required now' if sent else 'can be missing now'}"
        for part in ("items", "additionalProperties"):
            if isinstance(old.get(part), dict) and isinstance(new.get(part), dict):
                yield from self._schema(old[part], new[part], f"{place}[]", sent=sent)


def _values(old: Object, new: Object, place: str, *, sent: bool) -> Iterator[str]:
    before, after = set(old.get("enum", ())), set(new.get("enum", ()))
    for value in sorted(map(str, before - after if sent else after - before)):
        yield f"{place}: {value} {'is no longer taken' if sent else 'is a new value'}"
    for word, narrower in (("minimum", 1), ("maximum", -1)):
        before_limit, limit = old.get(word), new.get(word)
        if not sent or limit is None:
            continue
        if before_limit is None or (limit - before_limit) * narrower > 0:
            yield f"{place}: {word} is {limit} now"


def _resolved(schema: Object, whole: Object) -> Object:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: Object = whole["components"]["schemas"][name] if name else schema
    return found


def main(words: Sequence[str]) -> int:
    made = document()
    if FILE.exists() and "--breaking" not in words:
        found = breaking(json.loads(FILE.read_text()), json.loads(text(made)))
        if found:
            print("error: this breaks programs of others:\n  " + "\n  ".join(found))
            print("\nhint: add beside what is there; --breaking writes it all the same")
            return 1
    FILE.write_text(text(made))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
