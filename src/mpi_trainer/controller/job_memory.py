"""What is remembered of jobs between two passes: one value a job, dropped as a whole.

Each tool keeps its own part of it, a small class with defaults; all of it can be found out again.
Guarantee: a job that was dropped leaves nothing behind, and a pass that was still on its way then
brings nothing back: parts of a job that is not under way are given, but not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from mpi_trainer.runtime.partial import Key

P = TypeVar("P")
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


class Rejection(msgspec.Struct, frozen=True):
    """Why a job cannot be carried out at all; it fails with these words."""

    reason: str
    message: str


class JobMemories:
    """Of the jobs of one kind that are under way."""

    def __init__(self) -> None:
        self._uids: dict[Key, str] = {}
        self._jobs: dict[str, dict[type[Any], Any]] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def begin(self, key: Key, uid: str) -> None:
        """The job of this name is under way; whatever was known of an earlier one is dropped."""
        if self._uids.get(key) == uid:
            return
        self.drop(key)
        self._uids[key] = uid
        self._jobs[uid] = {}

    def drop(self, key: Key) -> None:
        """The job is gone, or nothing is left to do for it."""
        self._jobs.pop(self._uids.pop(key, ""), None)

    def part(self, uid: str, kind: type[P]) -> P:
        """A part of what is known of a job, with its defaults where there was none."""
        known = self._jobs.get(uid)
        if known is None:
            return kind()
        found: P | None = known.get(kind)
        if found is None:
            found = known[kind] = kind()
        return found
