"""How far a reader has come in a container's log, exact over broken connections. Pure.

The API takes up reading at a whole second, so lines around it come twice; those that were given
already are known by their order and content and passed over. Guarantee: no line is given twice,
and none is passed over that was not given. Where the node has rotated the log meanwhile, the lines
in between cannot be had any more, and the next line says so.
"""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

_MARGIN: Final = timedelta(seconds=1)  # two streams of one container may be a little out of order
_BEGINNING: Final = datetime.fromtimestamp(0, UTC)


class LogEntry(msgspec.Struct, frozen=True):
    """One line as the node stores it; `gap`: lines before it may be gone."""

    time: datetime
    text: bytes
    gap: bool = False


class LogPosition:
    def __init__(self) -> None:
        self._newest = _BEGINNING
        self._given: deque[tuple[datetime, int]] = deque()
        self._expected: deque[int] | None = None
        self._lost = False

    @property
    def since(self) -> str:
        """From when on to read; everything, where nothing was given yet."""
        if not self._given:
            return ""
        return self._given[0][0].astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def resume(self) -> None:
        """The next line is the first one at or after `since`."""
        self._expected = deque(mark for _, mark in self._given) or None

    def lose(self) -> None:
        """Lines before the next one are gone."""
        self._lost = True

    def take(self, line: bytes) -> LogEntry | None:
        """The line, with its time; None where it was given before."""
        stamp, _, text = line.partition(b" ")
        time = _time(stamp)
        if time is None:
            time, text = self._newest, line
        mark = hash(line)
        gap, self._lost = self._lost, False
        if self._expected is not None:
            if mark in self._expected:
                while self._expected.popleft() != mark:
                    pass
                self._expected = self._expected or None
                return None
            gap = gap or len(self._expected) == len(self._given)
            self._expected = None
        self._note(time, mark)
        return LogEntry(time, text, gap)

    def _note(self, time: datetime, mark: int) -> None:
        self._newest = max(time, self._newest)
        self._given.append((time, mark))
        oldest = self._newest.replace(microsecond=0) - _MARGIN
        while self._given[0][0] < oldest:
            self._given.popleft()


def _time(stamp: bytes) -> datetime | None:
    """None also of one without a zone: where a log is limited by bytes, its end is cut anywhere."""
    try:
        time = datetime.fromisoformat(stamp.decode("ascii", "replace"))
    except ValueError:
        return None
    return None if time.tzinfo is None else time
