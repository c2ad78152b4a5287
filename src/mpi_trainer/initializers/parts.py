"""Files that are being fetched, in a folder of their own, until all of them are whole.

A part's chunks are noted once they are on disk, so a run that was killed, or a machine that went
down, fetches only what is missing. A part that is whole is checked against its checksum, and then
its name says what it holds.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from mpi_trainer.initializers.model import Checksum, FetchError, Item

CHUNK: Final = 32 << 20
_BLOCK: Final = 1 << 20
_PART: Final = ".part"
_WHOLE: Final = re.compile(r"(\d{1,9})-(\d{1,19})-([0-9a-f]{64})")
_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Fetched(msgspec.Struct, frozen=True):
    size: int
    sha256: str


class Parts(msgspec.Struct, frozen=True):
    """The folder with them, as a descriptor."""

    folder: int

    def whole(self) -> dict[int, Fetched]:
        """By number, those that are whole and checked."""
        found = {}
        for name in names(self.folder):
            match = _WHOLE.fullmatch(name)
            if match is None:
                continue
            seen = os.lstat(name, dir_fd=self.folder)
            if stat.S_ISREG(seen.st_mode) and seen.st_size == int(match[2]):
                found[int(match[1])] = Fetched(seen.st_size, match[3])
        return found

    def begun(self, number: int, item: Item) -> Part:
        return Part(self.folder, number, item)

    def begun_bytes(self) -> int:
        """What parts that are not whole have of the disk; that need not be free once more."""
        parts = [name for name in names(self.folder) if name.endswith(_PART)]
        return sum(512 * os.lstat(name, dir_fd=self.folder).st_blocks for name in parts)


class Part:
    """One file that is being fetched. Threads may write different chunks of it at once."""

    def __init__(self, folder: int, number: int, item: Item) -> None:
        self.item = item
        self.number = number
        self._folder = folder
        self._name, self._notes = f"{number}{_PART}", f"{number}.done"
        self._file = os.open(self._name, _OPEN, 0o664, dir_fd=folder)
        self._lock = threading.Lock()
        self._many = item.ranges and item.size is not None and item.size > CHUNK
        self._log = -1
        self._done: set[int] = set()
        if self._many:
            self._log = os.open(self._notes, _OPEN | os.O_APPEND, 0o664, dir_fd=folder)
            self._done = self._noted()
        if not self._done:
            os.ftruncate(self._file, 0)
        self._left = len(list(self.missing()))

    def missing(self) -> Iterator[tuple[int, int | None]]:
        """From where to where there is something to fetch."""
        size = self.item.size
        if not self._many or size is None:
            yield 0, size
            return
        for start in range(0, size, CHUNK):
            if start // CHUNK not in self._done:
                yield start, min(start + CHUNK, size)

    @property
    def kept(self) -> int:
        """Bytes that need not be fetched again."""
        size = self.item.size or 0
        return sum(min(CHUNK, size - n * CHUNK) for n in self._done)

    def write(self, offset: int, data: bytes | memoryview) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._file, view, offset)
            view, offset = view[written:], offset + written

    def chunk_done(self, start: int) -> bool:
        """Notes a chunk; whether it was the last one."""
        if self._many:
            os.fdatasync(self._file)
            os.write(self._log, b"%d\n" % (start // CHUNK))
        with self._lock:
            self._left -= 1
            return self._left == 0

    def restart(self) -> None:
        """What is there is not what was asked for; begins anew at the next run."""
        os.ftruncate(self._file, 0)
        if self._many:
            os.ftruncate(self._log, 0)

    def finished(self, go_on: Callable[[], None]) -> Fetched:
        """Checks it and gives it the name of a whole one. Raises FetchError, and whatever `go_on`
        raises, which is asked again and again: reading a large file takes minutes."""
        fetched = self._checked(go_on)
        os.fsync(self._file)
        name = part_name(self.number, fetched)
        os.rename(self._name, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        if self._many:
            os.unlink(self._notes, dir_fd=self._folder)
        return fetched

    def close(self) -> None:
        os.close(self._file)
        if self._log >= 0:
            os.close(self._log)

    def _checked(self, go_on: Callable[[], None]) -> Fetched:
        size = os.fstat(self._file).st_size
        if self.item.size is not None and size != self.item.size:
            self.restart()
            raise FetchError(
                f"{self.item.path} has {size} bytes, not {self.item.size}",
                "It is fetched anew at the next attempt; see that nobody writes to it meanwhile.",
            )
        sha256, git = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        wanted = self.item.checksum
        for offset in range(0, size, _BLOCK):
            go_on()
            block = os.pread(self._file, _BLOCK, offset)
            sha256.update(block)
            if wanted is not None and wanted.algorithm == "git":
                git.update(block)
        found = Checksum("sha256", sha256.hexdigest())
        if wanted is not None and wanted.algorithm == "git":
            found = Checksum("git", git.hexdigest())
        if wanted is not None and found != wanted:
            self.restart()
            raise FetchError(
                f"{self.item.path} has the checksum {found.value}, not {wanted.value}",
                "What the server has is damaged, or was replaced: compare it with its original, "
                "and correct the checksum if that is what is wrong.",
            )
        return Fetched(size, sha256.hexdigest())

    def _noted(self) -> set[int]:
        size = self.item.size or 0
        chunks = -(-size // CHUNK)
        text = os.pread(self._log, 12 * chunks + 64, 0)
        text = text[: text.rfind(b"\n") + 1]
        os.ftruncate(self._log, len(text))  # a line that was cut would be another number with more
        found = {int(n) for n in text.split(b"\n") if n.isdigit() and len(n) < 10}
        end = os.fstat(self._file).st_size
        if any(min((n + 1) * CHUNK, size) > end for n in found):
            os.ftruncate(self._log, 0)  # they are not of this file
            return set()
        return {n for n in found if n < chunks}


def part_name(number: int, one: Fetched) -> str:
    """Of a part that is whole: its name says what it must hold."""
    return f"{number}-{one.size}-{one.sha256}"


def names(folder: int) -> list[str]:
    """Of all that is in a folder that is open."""
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]
