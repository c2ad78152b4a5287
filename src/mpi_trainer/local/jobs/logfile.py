"""A job's log on disk: one JSON value a line, in files of bounded size, the oldest dropped.

What is dropped is counted: the name of every file carries the number of its first line, so a
reader knows exactly how many are gone. A reader that follows holds its file open and loses nothing
while it keeps pace. A last line that a kill has torn is left out.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from mpi_trainer.api.yaml import typed
from mpi_trainer.local.paths import open_unlinked

SEGMENT_BYTES = 8 << 20
SEGMENTS = 16
BLOCK_BYTES = 64 << 10
KEPT_FREE = 32 << 10
"""room on the disk that a log does not take: orders to the job and its end are written there"""


class LogEntry(msgspec.Struct, frozen=True, array_like=True):
    """One line. `number` counts the job's lines from 0."""

    number: int
    time: float
    attempt: int
    pod: str
    stream: str
    rank: int | None
    text: str


class Missing(msgspec.Struct, frozen=True, omit_defaults=True):
    """Lines that a log does not have: `lost` were not written, `dropped` made room for others."""

    lost: int = 0
    why: str = ""
    dropped: int = 0

    def words(self) -> str:
        """Empty where none is missing."""
        parts = []
        if self.lost:
            parts.append(f"{self.lost} lines of output could not be kept: {self.why}")
        if self.dropped:
            parts.append(f"the first {self.dropped} lines of output are gone: the log is bounded")
        return "; ".join(parts)


_ENCODER = msgspec.json.Encoder()
_DECODER = typed.decoder(LogEntry)


class LogWriter:
    """Appends lines. Not for two processes at once."""

    def __init__(self, folder: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._folder = folder
        self._limit = segment_bytes
        self._number = _end_of(folder)
        self._file: int | None = None
        self._size = 0
        self._torn = False
        self.missing = Missing()

    @property
    def number(self) -> int:
        """The number that the next line gets."""
        return self._number

    def add(self, entries: list[LogEntry]) -> None:
        """Danger: raises OSError on a full disk; the lines are lost then, and counted as such."""
        first, self._number = self._number, self._number + len(entries)
        data = b"".join(_ENCODER.encode(entry) + b"\n" for entry in entries)
        kept = 0
        try:
            kept = self._write(first, data)
            if kept < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            lost = self.missing.lost + len(entries) - data.count(b"\n", 0, kept)
            why = error.strerror or str(error)
            self.missing = msgspec.structs.replace(self.missing, lost=lost, why=why)
            raise

    def _write(self, first: int, data: bytes) -> int:
        """How many bytes of `data` are on disk."""
        if self._file is None or self._size + len(data) > self._limit:
            self._begin(first)
        assert self._file is not None
        disk = os.fstatvfs(self._file)
        if disk.f_bavail * disk.f_frsize < KEPT_FREE + len(data):
            return 0
        # What a full disk has cut is closed, so that it does not spoil the line after it.
        closing = b"\n" if self._torn else b""
        self._torn = True
        written = os.write(self._file, closing + data)
        self._torn = written < len(closing + data)
        self._size += written
        return max(written - len(closing), 0)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _begin(self, first: int) -> None:
        self.close()
        path = self._folder / f"log.{first:012d}.jsonl"
        self._file = open_unlinked(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        # An earlier writer can have left half a line under this number, and nothing more.
        self._size, self._torn = 0, False
        there = segments(self._folder)
        for old in there[:-SEGMENTS]:
            old.unlink(missing_ok=True)
            first_left = _first_of(there[-SEGMENTS])
            self.missing = msgspec.structs.replace(self.missing, dropped=first_left)


class LogReader:
    """Reads from the oldest line that is left, and goes on where it stopped."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path: Path | None = None
        self._file: int | None = None
        self._rest = b""
        self._next = 0

    def read(self) -> Iterator[tuple[int, LogEntry]]:
        """What has come since the last call: lines, each with how many before it are gone."""
        while True:
            if self._file is None and not self._open_next():
                return
            yield from self._lines()
            following = [p for p in segments(self._folder) if self._path and p > self._path]
            if not following:
                return
            # A later file exists, so this one is complete: read what came in between, then leave.
            yield from self._lines()
            self.close()

    def tail(self, count: int, takes: Callable[[LogEntry], bool]) -> list[tuple[int, LogEntry]]:
        """The last `count` lines that are wanted, oldest first, each with how many before it are
        gone; `read` goes on after them. Takes as long as it has to go back, not as the log is.

        Danger: it must be the first call, and asks `takes` about the newest line first.
        """
        found: list[tuple[int, LogEntry]] = []
        later = None
        for entry in self._backwards():
            if later is not None and found:
                lost, oldest = found[-1]
                found[-1] = (lost + max(later - entry.number - 1, 0), oldest)
            later = entry.number
            if takes(entry):
                found.append((0, entry))
                if len(found) > count:
                    break
        else:
            if later and found:
                lost, oldest = found[-1]
                found[-1] = (lost + later, oldest)
        return found[:count][::-1]

    def _backwards(self) -> Iterator[LogEntry]:
        """Every line from the newest to the oldest; this reader is after the newest then."""
        for path in reversed(segments(self._folder)):
            try:
                file = open_unlinked(path, os.O_RDONLY)
            except FileNotFoundError:
                return  # dropped just now, and with it all that is older
            newest = self._file is None
            try:
                end = _complete(file, os.fstat(file).st_size)
                if newest:
                    os.lseek(file, end, os.SEEK_SET)
                    self._path, self._file, self._next = path, file, _first_of(path)
                for line in _lines_backwards(file, end):
                    try:
                        entry = _DECODER.decode(line)
                    except msgspec.MsgspecError:
                        continue
                    if newest:
                        self._next = max(self._next, entry.number + 1)
                    yield entry
            finally:
                if not newest:
                    os.close(file)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file, self._rest = None, b""

    def _open_next(self) -> bool:
        later = [p for p in segments(self._folder) if self._path is None or p > self._path]
        for path in later:
            try:
                self._file = open_unlinked(path, os.O_RDONLY)
            except FileNotFoundError:
                continue  # dropped just now; the next one says how much is gone
            self._path = path
            return True
        return False

    def _lines(self) -> Iterator[tuple[int, LogEntry]]:
        assert self._file is not None
        while data := os.read(self._file, 1 << 20):
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                try:
                    entry = _DECODER.decode(line)
                except msgspec.MsgspecError:
                    continue
                gone, self._next = entry.number - self._next, entry.number + 1
                yield max(gone, 0), entry


def _complete(file: int, size: int) -> int:
    """Where its last whole line ends."""
    while size > 0:
        start = max(size - BLOCK_BYTES, 0)
        found = os.pread(file, size - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        size = start
    return 0


def _lines_backwards(file: int, end: int) -> Iterator[bytes]:
    """The lines before `end`, which is after a newline, from the last to the first."""
    end, block, rest = end - 1, BLOCK_BYTES, b""
    while end > 0:
        start = max(end - block, 0)
        first, *lines = (os.pread(file, end - start, start) + rest).split(b"\n")
        yield from reversed(lines)
        # A line of many blocks is put together in few steps.
        block = BLOCK_BYTES if lines else block * 2
        end, rest = start, first
    if rest:
        yield rest


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("log.*.jsonl"))


def _first_of(segment: Path) -> int:
    """The number of its first line."""
    return int(segment.name.split(".")[1])


def _end_of(folder: Path) -> int:
    """The number after the last line on disk, for a writer that goes on after another."""
    end = max(map(_first_of, segments(folder)), default=0)
    reader = LogReader(folder)
    for _, entry in reader.read():
        end = max(end, entry.number + 1)
    reader.close()
    return end
