"""What a terminal shows after a program has written to it: rows of spans with one style each.

Understood are colours and weights (SGR), carriage return, backspace, tab and the erasing of a line;
every other control sequence is dropped. Rows never wrap here, and a character is one column wide.
Pure.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Final

import msgspec

TAB: Final = 8

_SEQUENCE: Final = re.compile(
    r"\x1b\[(?P<numbers>[\d;:]*)[ -?]*(?P<kind>[@-~])"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b[@-Z\\-_=>78]|\x1b[()][A-Z0-9]"
    r"|(?P<text>[^\x1b])",
    re.DOTALL,
)


class Style(msgspec.Struct, frozen=True):
    """`colour` is one of the terminal's sixteen, or None for the ordinary one."""

    colour: int | None = None
    bold: bool = False
    faint: bool = False


class Span(msgspec.Struct, frozen=True):
    column: int
    text: str
    style: Style


Row = tuple[Span, ...]
Cell = tuple[str, Style]

PLAIN: Final = Style()
_BLANK: Final[Cell] = (" ", PLAIN)
_WEIGHTS: Final[dict[int, dict[str, object]]] = {
    1: {"bold": True},
    2: {"faint": True},
    22: {"bold": False, "faint": False},
}


def rows(output: str) -> tuple[Row, ...]:
    """The rows that the output leaves on a screen without end; empty ones at the end are cut."""
    screen = _Screen()
    for match in _SEQUENCE.finditer(output):
        if match["kind"]:
            screen.control(match["kind"], match["numbers"])
        elif match["text"]:
            screen.write(match["text"])
    found = [_spans(line) for line in screen.lines]
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def styled(style: Style, numbers: str) -> Style:
    """The style after a select-graphic-rendition sequence."""
    codes = [int(n or 0) for n in re.split("[;:]", numbers)]
    while codes:
        code = codes.pop(0)
        if code in (38, 48):  # a colour of the large palettes: nothing here uses them
            del codes[: 2 if codes[:1] == [5] else 4]
        else:
            style = _changed(style, code)
    return style


def _changed(style: Style, code: int) -> Style:
    if code == 0:
        return PLAIN
    changes: dict[str, object] = {}
    if code in _WEIGHTS:
        changes = _WEIGHTS[code]
    elif code == 39:
        changes = {"colour": None}
    elif 30 <= code <= 37:
        changes = {"colour": code - 30}
    elif 90 <= code <= 97:
        changes = {"colour": code - 90 + 8}
    return msgspec.structs.replace(style, **changes)


class _Screen:
    def __init__(self) -> None:
        self.lines: list[list[Cell]] = [[]]
        self._column = 0
        self._style = PLAIN

    def control(self, kind: str, numbers: str) -> None:
        if kind == "m":
            self._style = styled(self._style, numbers)
        elif kind == "K":
            self._erase(numbers or "0")

    def write(self, character: str) -> None:
        match character:
            case "\n":
                self.lines.append([])
            case "\r":
                self._column = 0
            case "\b":
                self._column = max(self._column - 1, 0)
            case "\t":
                self._column += TAB - self._column % TAB
            case _ if character.isprintable():
                self._put(character)

    def _put(self, character: str) -> None:
        line = self.lines[-1]
        line += [_BLANK] * (self._column + 1 - len(line))
        line[self._column] = (character, self._style)
        self._column += 1

    def _erase(self, part: str) -> None:
        line = self.lines[-1]
        if part == "0":
            del line[self._column :]
        elif part == "1":
            end = min(self._column + 1, len(line))
            line[:end] = [_BLANK] * end
        else:
            line.clear()


def _spans(line: list[Cell]) -> Row:
    spans, column = [], 0
    for style, cells in groupby(line, key=lambda cell: cell[1]):
        text = "".join(character for character, _ in cells)
        spans.append(Span(column, text, style))
        column += len(text)
    while spans and not spans[-1].text.strip():
        spans.pop()
    if spans:
        last = spans[-1]
        spans[-1] = msgspec.structs.replace(last, text=last.text.rstrip())
    return tuple(spans)
