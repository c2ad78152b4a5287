"""The YAML that most files are written in, read line by line, without a YAML library.

Mappings and lists by indentation, `[a, b]` and `{a: b}` within a line, words and quoted text within
a line, text of several lines after `|`, comments, and `---` between documents. Guarantee: the same
events as `yamlevents.parsed` gives, or none at all; a test compares the two. Danger: whatever is
added here must be YAML to the letter; any other text of several lines, escapes, anchors, tags and
every mistake belong to the library.
"""

from __future__ import annotations

from mpi_trainer.api.yaml.yaml_events import Kind, YamlEvent

_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
_WORD = _LETTERS | frozenset("0123456789./-")
_STARTS = _LETTERS | frozenset("0123456789./$~(+<=^\\")
_IN_FLOW = _WORD | frozenset("+=@$%^ ()~")
_FLOW_STARTS = _LETTERS | frozenset("0123456789./")
_WORD_AFTER_DASH = _FLOW_STARTS | frozenset("-")
_LONGEST_KEY = 100
_DEEPEST = 60

Line = tuple[int, int, str]
"""its number, its indentation, and the rest of it"""


class _More(Exception):
    """There is more to the text than is read here."""


def events(text: str) -> list[YamlEvent] | None:
    """The events of every document that is not empty; None where the library must read it."""
    if not text.isascii() or not text.replace("\n", "").isprintable():
        return None
    found: list[YamlEvent] = []
    try:
        whole = text.split("\n")
        for lines in _documents(whole):
            found.append(YamlEvent("document", lines[0][0], 0))
            found += _Reader(lines, whole).read()
    except _More:
        return None
    return found


def _documents(whole: list[str]) -> list[list[Line]]:
    parts: list[list[Line]] = [[]]
    for number, line in enumerate(whole):
        content = line.strip(" ")
        if not content or content.startswith("#"):
            continue
        if line.startswith(("---", "...", "%")):
            if line.rstrip(" ") != "---":
                raise _More
            parts.append([])
        else:
            parts[-1].append((number, len(line) - len(line.lstrip(" ")), content))
    return [part for part in parts if part]


class _Reader:
    """One document. Every construct must end in its line or by indentation."""

    def __init__(self, lines: list[Line], whole: list[str]) -> None:
        self._lines = lines
        self._whole = whole
        self._at = 0
        self._depth = 0
        self._found: list[YamlEvent] = []

    def read(self) -> list[YamlEvent]:
        self._block(-1)
        if self._at < len(self._lines):
            raise _More
        return self._found

    def _emit(
        self, kind: Kind, line: int, column: int, value: str = "", plain: bool = False
    ) -> None:
        self._found.append(YamlEvent(kind, line, column, value, plain))

    def _indent(self) -> int:
        """That of the line that comes now; -1 at the end."""
        return self._lines[self._at][1] if self._at < len(self._lines) else -1

    def _block(self, outside: int) -> None:
        """A value that begins with a line of its own, deeper than what is around it."""
        self._depth += 1
        number, indent, content = self._lines[self._at]
        if self._depth > _DEEPEST:
            raise _More
        if _is_item(content):
            self._sequence(indent)
        elif _key(content):
            self._mapping(indent)
        else:
            self._at += 1
            self._inline(number, indent, content)
        if self._indent() > outside:
            raise _More
        self._depth -= 1

    def _mapping(self, indent: int) -> None:
        self._emit("mapping", self._lines[self._at][0], indent)
        while self._indent() == indent:
            number, _, content = self._lines[self._at]
            key = _key(content)
            if not key:
                break
            self._emit("scalar", number, indent, key, True)
            self._at += 1
            after = len(key) + 1
            self._value((number, indent + after, content[after:]), indent, indent)
        self._end()

    def _sequence(self, indent: int) -> None:
        self._emit("sequence", self._lines[self._at][0], indent)
        while self._indent() == indent:
            number, _, content = self._lines[self._at]
            if not _is_item(content):
                break
            rest = content[1:].lstrip(" ")
            column = indent + len(content) - len(rest)
            if _is_item(rest) or _key(rest):
                self._lines[self._at] = (number, column, rest)
                self._block(indent)
            else:
                self._at += 1
                self._value((number, indent + 1, content[1:]), indent, None)
        self._end()

    def _end(self) -> None:
        self._emit("end", 0, 0)

    def _value(self, rest: Line, indent: int, list_at: int | None) -> None:
        """What follows a key or a dash; a list may stand as far left as the key it belongs to."""
        number, column, content = rest
        text = content.lstrip(" ")
        if text in ("|", "|-"):
            self._literal(number, column + len(content) - len(text), text, indent)
        elif text and not text.startswith("#"):
            self._inline(number, column + len(content) - len(text), text)
            if self._indent() > indent:
                raise _More
        elif self._indent() > indent:
            self._block(indent)
        elif self._indent() == list_at and _is_item(self._lines[self._at][2]):
            self._sequence(indent)
        else:
            self._emit("scalar", number, column, "", True)

    def _literal(self, number: int, column: int, mark: str, outside: int) -> None:
        """The lines that are indented below `|`, as they stand; blank ones at the end are none."""
        taken: list[str] = []
        below = self._whole[number + 1 :]
        first = next((line for line in below if line.strip(" ")), "")
        indent = len(first) - len(first.lstrip(" "))
        if indent <= outside or not first or self._whole[-1]:
            raise _More
        for line in below:
            blank = not line.strip(" ")
            if not blank and not line.startswith(" " * indent):
                break
            if blank and not any(taken) and len(line) > indent:
                raise _More
            taken.append(line[indent:])
        end = number + 1 + len(taken)
        while self._at < len(self._lines) and self._lines[self._at][0] < end:
            self._at += 1
        while not taken[-1]:
            taken.pop()
        value = "\n".join(taken) + ("\n" if mark == "|" else "")
        self._emit("scalar", number, column, value)
        if self._indent() > outside:
            raise _More

    def _inline(self, number: int, column: int, text: str) -> None:
        """A value that ends in its line, and perhaps a comment after it."""
        if text[0] in "[{":
            end = self._flow(number, column, text, 0)
        elif text[0] in "\"'":
            end = self._quoted(number, column, text, 0)
        else:
            value = text.partition(" #")[0].rstrip(" ")
            begins = value[0] in _STARTS or (value[0] == "-" and value[1:2] in _WORD_AFTER_DASH)
            if not begins or ": " in value or value.endswith(":"):
                raise _More
            self._emit("scalar", number, column, value, True)
            return
        rest = text[end:]
        if rest.strip(" ") and not (rest[0] == " " and rest.lstrip(" ").startswith("#")):
            raise _More

    def _quoted(self, number: int, column: int, text: str, at: int) -> int:
        """Returns where the text goes on, as all that read within a line do."""
        end = text.find(text[at], at + 1)
        value = text[at + 1 : end]
        if end < 0 or "\\" in value or text[end + 1 : end + 2] == text[at] == "'":
            raise _More
        self._emit("scalar", number, column + at, value)
        return end + 1

    def _flow(self, number: int, column: int, text: str, at: int) -> int:
        kind: Kind = "mapping" if text[at] == "{" else "sequence"
        closing = "}" if kind == "mapping" else "]"
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _More
        self._emit(kind, number, column + at)
        at = _skipped(text, at + 1)
        more = text[at : at + 1] != closing
        while more:
            if kind == "mapping":
                at = self._part(number, column, text, at)
                if text[at : at + 2] != ": ":
                    raise _More
                at = _skipped(text, at + 1)
            nested = text[at : at + 1] in ("[", "{")
            at = (self._flow if nested else self._part)(number, column, text, at)
            at = _skipped(text, at)
            more = text[at : at + 1] == ","
            if more:
                at = _skipped(text, at + 1)
        if text[at : at + 1] != closing:
            raise _More
        self._end()
        self._depth -= 1
        return at + 1

    def _part(self, number: int, column: int, text: str, at: int) -> int:
        """A word or quoted text within brackets."""
        first = text[at : at + 1]
        if first in ("'", '"'):
            return self._quoted(number, column, text, at)
        dashed = first == "-" and text[at + 1 : at + 2] in _WORD_AFTER_DASH
        if not dashed and (not first or first not in _FLOW_STARTS):
            raise _More
        end = at
        while text[end : end + 1] in _IN_FLOW:
            end += 1
        value = text[at:end].rstrip(" ")
        self._emit("scalar", number, column + at, value, True)
        return at + len(value)


def _is_item(content: str) -> bool:
    return content == "-" or content.startswith("- ")


def _key(content: str) -> str:
    """The key that the line begins with; empty where it begins with something else."""
    key, colon, rest = content.partition(":")
    plain = colon and rest[:1] in ("", " ") and 0 < len(key) <= _LONGEST_KEY
    return key if plain and key[0] in _LETTERS and _WORD.issuperset(key) else ""


def _skipped(text: str, at: int) -> int:
    while text[at : at + 1] == " ":
        at += 1
    return at
