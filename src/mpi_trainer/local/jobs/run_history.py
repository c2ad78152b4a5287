"""A record of `odh run`, whose jobs leave nothing else: a line of JSON for each, oldest first.

The file is bounded: when it is full, the older half goes. Nothing depends on it, so a record that
cannot be written is left out.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.paths import jobs_dir, open_unlinked

LARGEST: Final = 1 << 20
LONGEST: Final = 4000
"""characters of a command or message"""


class RunRecord(msgspec.Struct, frozen=True):
    name: str
    command: tuple[str, ...]
    folder: str
    mpi: str
    ranks: int
    started: datetime
    seconds: float
    state: str
    message: str = ""


def add(record: RunRecord) -> None:
    with suppress(OSError, LocalError):
        path = _path()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        line = msgspec.json.encode(_shortened(record)) + b"\n"
        with os.fdopen(open_unlinked(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab") as file:
            full = file.tell() > LARGEST
            file.write(line)
        if full:
            _halve(path)


def records() -> list[RunRecord]:
    """Oldest first. OSError where there may be some that cannot be read."""
    found = []
    with suppress(FileNotFoundError, LocalError):
        with os.fdopen(open_unlinked(_path(), os.O_RDONLY), "rb") as file:
            lines = file.read(2 * LARGEST).splitlines()
        for line in lines:
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                found.append(msgspec.json.decode(line, type=RunRecord))
    return found


def _halve(path: Path) -> None:
    """Keeps the newer lines; whoever appends meanwhile may lose one."""
    newer = path.read_bytes()[-LARGEST // 2 :].partition(b"\n")[2]
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.unlink(missing_ok=True)  # of one that was killed here
    with os.fdopen(open_unlinked(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(newer)
    fresh.replace(path)


def _shortened(record: RunRecord) -> RunRecord:
    room, words = LONGEST, []
    for word in record.command:
        words.append(_text(word[:room]))
        room -= len(word)
        if room <= 0:
            break
    return msgspec.structs.replace(
        record,
        command=tuple(words),
        folder=_text(record.folder),
        message=_text(record.message[:LONGEST]),
    )


def _text(word: str) -> str:
    """Without what JSON has no bytes for: arguments and paths need not be UTF-8."""
    return word.encode(errors="replace").decode()


def _path() -> Path:
    return jobs_dir().parent / "runs.jsonl"
