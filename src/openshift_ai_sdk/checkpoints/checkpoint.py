"""One checkpoint: a folder with a part of every rank and the marker that says what they are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from .files import Broken, Part, check_part, number, read_whole, write_whole

FORMAT: Final = 1
MARKER: Final = "complete"
STEPS: Final = 10**12
ATTEMPTS: Final = 10**6
NOTHING: Final = 1 << 62
"""more than any number of a checkpoint"""

_NAME: Final = re.compile(r"step-(\d{12})-(\d{1,6})-([0-9a-f]{12})", re.ASCII)


class Name(NamedTuple):
    """Of a checkpoint's folder. The order is that of time: later attempts went on from earlier."""

    attempt: int
    step: int
    token: int

    def __str__(self) -> str:
        return f"step-{self.step:012d}-{self.attempt}-{self.token:012x}"

    @property
    def number(self) -> int:
        """In the same order."""
        return self.attempt * STEPS + self.step


def names(folder: Path) -> Iterator[Name]:
    """Of all that may be a checkpoint; anything else in the folder is left alone."""
    with os.scandir(folder) as entries:
        for entry in entries:
            match = _NAME.fullmatch(entry.name)
            if match and entry.is_dir(follow_symlinks=False):
                yield Name(int(match[2]), int(match[1]), int(match[3], 16))


def part_name(rank: int) -> str:
    return f"rank-{rank:06d}.part"


class Checkpoint(NamedTuple):
    """A whole checkpoint. It stays until `keep` newer ones are whole: read it before you save."""

    step: int
    attempt: int
    size: int
    """how many ranks wrote it"""
    folder: Path
    rank: int

    def file(self, rank: int | None = None) -> Path:
        """What this rank, or another, has saved; for loaders that want a path."""
        wanted = self.rank if rank is None else rank
        path = self.folder / part_name(wanted)
        if not 0 <= wanted < self.size or not path.exists():
            raise LookupError(f"rank {wanted} has no part of {self.folder}, of {self.size} ranks")
        return path

    def read(self, rank: int | None = None) -> bytes:
        return self.file(rank).read_bytes()

    def arrays(self, rank: int | None = None) -> dict[str, Any]:
        """The arrays that were saved by name. Nothing in them is ever unpickled."""
        import numpy as np

        with np.load(self.file(rank), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}


def mark(folder: Path, name: Name, parts: Iterable[Part | None]) -> None:
    """Makes a checkpoint of the parts; the last that is written."""
    said = {"format": FORMAT, "step": name.step, "attempt": name.attempt, "parts": [*parts]}
    write_whole(folder / MARKER, said)


def marked(folder: Path, name: Name) -> list[Part | None]:
    """What the marker says of all parts. Raises FileNotFoundError where there is none."""
    said = read_whole(folder / MARKER)
    form = number(said, "format", NOTHING)
    if form > FORMAT:
        raise Broken(f"format {form} is newer than {FORMAT}, the newest that is known here")
    if (said.get("step"), said.get("attempt")) != (name.step, name.attempt):
        raise Broken("its marker is of another checkpoint")
    parts = said.get("parts")
    if not isinstance(parts, list) or not parts:
        raise Broken("its marker names no parts")
    return [as_part(part) for part in parts]


def as_part(said: Any) -> Part | None:
    """As it was stored; a rank that had nothing to save has none."""
    if said is None:
        return None
    if not isinstance(said, list) or len(said) != 2 or not isinstance(said[1], str):
        raise Broken("what is said of a part is not ours")
    return Part(number({"size": said[0]}, "size", NOTHING), said[1])


def judged(folder: Path, name: Name, rank: int, stride: int) -> Checkpoint:
    """The checkpoint, if it is whole. Of the parts, every `stride`th from `rank` on is read, of the
    others the size is looked at. Raises FileNotFoundError where there is no marker."""
    parts = marked(folder, name)
    for index, part in enumerate(parts):
        if part is not None:
            mine = index % stride == rank % stride
            check_part(folder / part_name(index), index, part, read=mine)
    return Checkpoint(name.step, name.attempt, len(parts), folder, rank)
