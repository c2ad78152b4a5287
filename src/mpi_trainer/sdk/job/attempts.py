"""The words between a job's attempts: which one begins, and how the one before it ended. Pure."""

from __future__ import annotations

from typing import Final

from mpi_trainer.decide.history import SUSPENDED, Attempt, History

LONGEST: Final = 240


class AttemptMarks:
    """Of one job. `most` is how many attempts it has at most, 0 where nobody knows; `history` are
    those that have ended."""

    def __init__(self, most: int, history: History) -> None:
        self._most = most
        self._history = history

    def begins(self, attempt: int) -> str:
        """Before the first line of an attempt; empty for a first one, which needs no mark."""
        if attempt <= 1:
            return ""
        before = next((one for one in self._history if one.attempt == attempt - 1), None)
        how = f": {_ended(before)}" if before is not None else ""
        return f"{self._number(attempt)}{how}"

    def kept(self, one: Attempt) -> str:
        """Before the lines of an attempt that were kept when its pods went, or in their place."""
        number = self._number(one.attempt)
        if one.words:
            return f"{number}: its pods are gone; its last lines were kept"
        why = f": {one.silence}" if one.silence else ""
        return f"{number}: its pods are gone, and none of its lines were kept{why}"

    def _number(self, attempt: int) -> str:
        return f"attempt {attempt}" + (f" of {self._most}" if attempt <= self._most else "")


def _ended(one: Attempt) -> str:
    if one.reason == SUSPENDED:
        return f"attempt {one.attempt} was suspended"
    said = one.message or one.reason
    said = said if len(said) <= LONGEST else f"{said[: LONGEST - 1]}…"
    return f"attempt {one.attempt} failed" + (f": {said.rstrip('.')}" if said else "")
