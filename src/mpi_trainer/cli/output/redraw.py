"""Text that changes in place on a terminal; elsewhere, only the lines that are new."""

from __future__ import annotations

import shutil
import sys
from typing import Self, TextIO


class Screen:
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

    def draw(self, text: str) -> None:
        lines = text.splitlines()
        if lines == self._lines:
            return
        if self.alive:
            height = shutil.get_terminal_size().lines - 1
            up = f"\x1b[{min(len(self._lines), height)}F" if self._lines else ""
            body = "".join(f"{line}\x1b[K\n" for line in lines[-height:])
            self._stream.write(f"{up}{body}\x1b[J")
        else:
            known = set(self._lines)
            self._stream.writelines(f"{line}\n" for line in lines if line not in known)
        self._stream.flush()
        self._lines = lines
