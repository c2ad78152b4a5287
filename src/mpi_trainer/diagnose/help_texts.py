"""What mpirun itself says between two rules of dashes, put into one line. Pure but for its memory.

Open MPI breaks its sentences anywhere, so that what a rule looks for can be on two lines. Danger: a
program can print such rules too, so little is taken and nothing is believed that no rule knows.
"""

from __future__ import annotations

import re
from typing import Final

RULE: Final = "-" * 58
_MOST_LINES = 16
_MOST = 2000
_OF_MPI = re.compile(
    r"\b(?:mpirun|mpiexec|prterun|PRTE|ORTE|Open MPI|Open RTE|PMIx|MPI|your job)\b"
)
# Texts that explain no failure: Open MPI goes on after them.
_HARMLESS = (
    "Sorry!  You were supposed to get help about",
    "By default, for Open MPI 4.0 and later, infiniband",
    "There was an error initializing an OpenFabrics device",
    "No preset parameters were found for the device",
    "the following supporting CUDA libraries",
    "Another transport will be used instead",
    "PMIx was unable to find a usable compression library",
)


class HelpTexts:
    """`first` is the first text that seems to be of an MPI."""

    def __init__(self) -> None:
        self.first = ""
        self._lines: list[str] | None = None

    @property
    def open(self) -> bool:
        return self._lines is not None

    def read(self, line: str) -> str:
        """A rule, or a line of an open text: the text that ends here, in one line; else empty."""
        lines = self._lines or []
        rule = line.startswith(RULE)
        if not rule:
            self._lines = [*lines, line.strip()[:_MOST]]
            if len(self._lines) < _MOST_LINES:
                return ""
            lines = self._lines
        text = " ".join(filter(None, lines))[:_MOST]
        # A rule after nothing opens, one after a text closes.
        self._lines = [] if rule and not text else None
        if not self.first and _OF_MPI.search(text) and not _is_harmless(text):
            self.first = text
        return text


def _is_harmless(text: str) -> bool:
    return any(words in text for words in _HARMLESS)
