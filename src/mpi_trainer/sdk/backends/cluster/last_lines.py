"""The newest lines of several logs that are read one after the other. Pure.

Guarantee: no more is held than `most` lines of each of two logs and, where `room` is given, so many
characters of each: the oldest go first, and the first line that is left says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

import msgspec

from mpi_trainer.sdk.backends.backend import LogLine

LEFT_OUT: Final = "lines before this one are left out: together they are too long for one answer"


class LastLines:
    def __init__(self, most: int, room: int | None) -> None:
        self._most = most
        self._room = room
        self._before: list[LogLine] = []
        self._lines: deque[LogLine] = deque()
        self._held = 0
        self._short = False

    def add(self, line: LogLine) -> None:
        """The next one of the log that is being read."""
        self._lines.append(line)
        self._held += len(line.text)
        while len(self._lines) > self._most or self._too_long:
            self._short = self._short or self._too_long
            self._held -= len(self._lines.popleft().text)

    def end(self) -> None:
        """Of that log."""
        found = sorted((*self._before, *self._lines), key=lambda line: line.time)
        self._clear()
        for line in found:
            self.add(line)
        self._before = list(self._lines)
        self._clear()

    def given(self) -> Iterable[LogLine]:
        """Oldest first; of one time those of the log that was read first."""
        if not (self._short and self._before):
            return self._before
        first, *others = self._before
        return [msgspec.structs.replace(first, notes=(*first.notes, LEFT_OUT)), *others]

    @property
    def _too_long(self) -> bool:
        return self._room is not None and self._held > self._room and len(self._lines) > 1

    def _clear(self) -> None:
        self._lines.clear()
        self._held = 0
