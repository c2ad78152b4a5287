"""What is wrong with a job, in the words of Kubernetes, and what to do about it.

    ValueError
    └── InvalidJob         everything that was found in one go; `errors` and `warnings` as values
    Exception
    └── ExplainedError     what is wrong in one sentence, and a hint what to do

A `FieldError` names the field, the value, the rule it breaks and the remedy; `position` is where
the user wrote it. Values are shown shortened and as JSON, so that a strange one cannot break the
line. Danger: a value is shown to whoever reads the message; give none where it may be a secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

Path = tuple[str | int, ...]

REQUIRED = "Required value"
INVALID = "Invalid value"
NOT_SUPPORTED = "Unsupported value"
UNKNOWN = "Unknown field"
WRONG_TYPE = "Invalid type"
DUPLICATE = "Duplicate value"
TOO_LONG = "Too long"
FORBIDDEN = "Forbidden"
SYNTAX = "Syntax error"
SUSPICIOUS = "Suspicious value"

SCREEN = 20
_SHOWN = 60


class Position(msgspec.Struct, frozen=True, order=True):
    """A place in a file, counted from 1 as editors do."""

    source: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}"


class FieldError(msgspec.Struct, frozen=True):
    """One thing that is wrong (or, among warnings, suspicious)."""

    path: Path
    problem: str
    value: object = msgspec.UNSET
    rule: str = ""
    remedy: str = ""
    position: Position | None = None

    @property
    def field(self) -> str:
        return field(self.path)

    def __str__(self) -> str:
        shown = "" if self.value is msgspec.UNSET else shorten(self.value)
        parts = (self.field, self.problem, shown, self.rule)
        text = ": ".join(part for part in parts if part)
        return f"{text}; {self.remedy}" if self.remedy else text


class InvalidJob(ValueError):
    """A job, or the file it is in, cannot be taken. The message fits one screen."""

    def __init__(self, errors: Iterable[FieldError], warnings: Iterable[FieldError] = ()) -> None:
        self.errors = tuple(errors)
        self.warnings = tuple(warnings)
        super().__init__(_screen(self.errors, self.warnings))


class ExplainedError(Exception):
    """`problem` is one sentence without a full stop; `hint` is what the user can do about it."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


def field(path: Path) -> str:
    """`path` as Kubernetes writes it: `a.b[0].c`, and `labels[example.com/x]` for other keys."""
    text = ""
    for part in path:
        if isinstance(part, int) or not part.replace("_", "").replace("-", "").isalnum():
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def shorten(value: object) -> str:
    import json

    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = json.dumps(str(value), ensure_ascii=False)
    if len(text) <= _SHOWN:
        return text
    end = '"' if text.endswith('"') else ""
    return f"{text[: _SHOWN - 1 - len(end)]}…{end}"


def kind_of(value: object) -> str:
    """The JSON kind of a value, in words, with its article."""
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "an integer", float: "a number", str: "a string"}
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    return names.get(type(value), f"a {type(value).__name__}")


def under(path: Path, others: Iterable[Path]) -> bool:
    """Whether `path` is one of `others`, or lies within or around one of them."""
    return any(path[: len(other)] == other[: len(path)] for other in others)


def line(error: FieldError) -> str:
    return f"{error.position}: {error}" if error.position else str(error)


def _screen(errors: Sequence[FieldError], warnings: Sequence[FieldError]) -> str:
    lines = [line(error) for error in errors] + [f"warning: {line(w)}" for w in warnings]
    if len(lines) > SCREEN:
        lines = [*lines[:SCREEN], f"and {len(lines) - SCREEN} more"]
    return "\n".join(lines)
