"""How odh looks on a terminal: colours only where someone sees them, tables that line up.

`NO_COLOR` is honoured. Programs that read our output get plain text.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Self, TextIO

# Both sets of control characters, and those that turn text or begin a line; not tab and newline.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_COLOURS = (36, 32, 33, 35, 34, 96, 92, 93, 95, 94)


def colourful(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def styled(text: str, code: int, stream: TextIO) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colourful(stream) else text


def good(text: str) -> str:
    return styled(text, 32, sys.stderr)


def bad(text: str) -> str:
    return styled(text, 31, sys.stderr)


def faint(text: str) -> str:
    return styled(text, 2, sys.stderr)


def rank_tag(rank: int, stream: TextIO) -> str:
    return styled(f"[{rank}]", _COLOURS[rank % len(_COLOURS)], stream)


def inert(text: str) -> str:
    """As a terminal shows it and does not obey it: what others wrote into a job may be hostile."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as their widest cell, two spaces apart."""
    lines = [tuple(header), *(tuple(map(_cell, row)) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _cell(text: str) -> str:
    return inert(text).replace("\n", " ")


def say(text: str = "") -> None:
    print(text, file=sys.stderr, flush=True)


def progress(what: str) -> Callable[[float], None]:
    """A line that says how long something has been going on, from the second second on."""
    shown = -1

    def show(seconds: float) -> None:
        nonlocal shown
        now = int(seconds)
        if now < 1 or now == shown:
            return
        if sys.stderr.isatty():
            print(f"\r{what} … {now} s", end="", file=sys.stderr, flush=True)
        elif shown < 1 or now % 10 == 0:
            say(f"{what} … {now} s")
        shown = now

    return show


def clear_progress() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class Screen:
    """Text that changes in place on a terminal; elsewhere, only the lines that are new."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._lines: list[str] = []

    @classmethod
    def over(cls, text: str) -> Self:
        """A screen that already shows `text` as its last lines."""
        screen = cls()
        screen._lines = text.splitlines()
        return screen

    @property
    def alive(self) -> bool:
        return self._stream.isatty()

    @property
    def width(self) -> int:
        return shutil.get_terminal_size().columns

    @property
    def height(self) -> int:
        """The lines that can change in place; of a longer text the first ones are shown."""
        return max(shutil.get_terminal_size().lines - 1, 1)

    def draw(self, text: str) -> None:
        lines = text.splitlines()
        if lines == self._lines:
            return
        if self.alive:
            height = self.height
            up = f"\x1b[{min(len(self._lines), height)}F" if self._lines else ""
            body = "".join(f"{line}\x1b[K\n" for line in lines[:height])
            self._stream.write(f"{up}{body}\x1b[J")
        else:
            known = set(self._lines)
            self._stream.writelines(f"{line}\n" for line in lines if line not in known)
        self._stream.flush()
        self._lines = lines
