"""How serious a line is, by the words that logging libraries put at its beginning. Pure."""

from __future__ import annotations

import re
from typing import Final

from mpi_trainer.api import bounds

LEVELS: Final = ("debug", "info", "warning", "error")
"""least serious first"""
_WORDS: Final = {
    "debug": 0,
    "trace": 0,
    "info": 1,
    "notice": 1,
    "warn": 2,
    "warning": 2,
    "error": 3,
    "critical": 3,
    "fatal": 3,
}
_BEGINNING: Final = 200
"""characters in which a level is looked for"""
_UPPER: Final = re.compile(r"\b(DEBUG|TRACE|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\b")
_NAMED: Final = re.compile(
    r"(?:\blevel\W{1,4}|\[|^)(debug|trace|info|notice|warn|warning|error|critical|fatal)\b",
    re.IGNORECASE,
)
_EXCEPTION: Final = re.compile(r"(?:[A-Za-z_]\w{0,80}\.){0,8}\w{0,80}(?:Error|Exception)\b")
_TRACEBACK: Final = "Traceback (most recent call last)"


def level(text: str) -> int | None:
    """Its place in LEVELS; None where the line says nothing about it."""
    beginning = text[:_BEGINNING]
    if beginning.startswith(_TRACEBACK) or _EXCEPTION.match(beginning):
        return 3
    found = _UPPER.search(beginning) or _NAMED.search(beginning)
    return _WORDS[found[1].lower()] if found else None


class LevelFilter:
    """Takes lines that are at least as serious as `least`. An indented line belongs to the one
    before it, as those of a traceback do."""

    def __init__(self, least: str) -> None:
        self._least = LEVELS.index(least)
        self._before: dict[object, int | None] = {}

    def takes(self, source: object, text: str) -> bool:
        """`source` is whose line it is: the lines of several ranks are mixed."""
        if not text[:1].isspace():
            if len(self._before) >= bounds.RANKS:  # a program can print the mark of any rank
                self._before.clear()
            self._before[source] = level(text)
        found = self._before.get(source)
        return found is not None and found >= self._least
