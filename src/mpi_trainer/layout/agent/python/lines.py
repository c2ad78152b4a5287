"""Puts the pieces of each rank's lines together again: standard input to standard output.

    python3 -I -S lines PREFIX

mpirun writes `PREFIX` RANK `>` before every piece that a rank wrote, also before one that goes on
in the middle of a line. Here the marks are taken out, and what a rank has begun waits for its
newline, so that no line of another rank comes in between.

Guarantee: every other byte is handed on, those of a rank in their order. What a rank has begun
waits no longer than `SILENCE` seconds after its last piece, or after its first where it draws over
its line (a carriage return), as prompts and progress bars do.
Danger: runs in images of users, with any Python since 3.6; nothing but the standard library.
"""

import os
import re
import select
import signal
import sys
import time

SILENCE = 2.0
LONGEST = 16 << 20
"""of what one rank has begun"""
MOST = 64 << 20
"""of what all have begun"""
DIGITS = 12


class Begun:
    """An unfinished line: when its first and its last piece came, and whether it is drawn over."""

    def __init__(self) -> None:
        self.text = bytearray()
        self.first = self.last = time.monotonic()
        self.drawn = False

    def add(self, piece: bytes) -> None:
        self.text += piece
        self.last = time.monotonic()
        self.drawn = self.drawn or b"\r" in piece

    def due(self) -> float:
        return (self.first if self.drawn else self.last) + SILENCE


class Lines:
    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._mark = re.compile(re.escape(prefix) + rb"(\d+)>")
        self._rank = b""  # whose piece goes on until the next mark; mpirun's own before the first
        self._cut = b""  # the beginning of what may be a mark
        self._begun: dict[bytes, Begun] = {}
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        """What can be handed on now."""
        data = self._cut + data
        end = self._end(data)
        data, self._cut = data[:end], data[end:]
        first, *rest = self._mark.split(data)
        given = self._piece(self._rank, first)
        for rank, piece in zip(rest[::2], rest[1::2]):  # noqa: B905 # not before Python 3.10
            self._rank = rank
            given += self._piece(rank, piece)
        return b"".join(given)

    def wait(self) -> "float | None":
        """Seconds until something has waited long enough; none where nothing waits."""
        if not self._begun:
            return None
        return max(0.0, min(one.due() for one in self._begun.values()) - time.monotonic())

    def overdue(self) -> bytes:
        """What has waited long enough."""
        now = time.monotonic()
        due = [rank for rank, one in self._begun.items() if one.due() <= now]
        return b"".join(map(self._take, due))

    def close(self) -> bytes:
        """All that is left."""
        rest, self._cut = self._cut, b""
        given = self._piece(self._rank, rest)
        return b"".join([*given, *map(self._take, list(self._begun))])

    def _piece(self, rank: bytes, piece: bytes) -> "list[bytes]":
        end = piece.rfind(b"\n") + 1
        given = [self._take(rank), piece[:end]] if end else []
        if end < len(piece):
            begun = self._begun.setdefault(rank, Begun())
            begun.add(piece[end:])
            self._size += len(piece) - end
            if len(begun.text) > LONGEST:
                given.append(self._take(rank))
            elif self._size > MOST:
                given.append(self._take(max(self._begun, key=self._length)))
        return given

    def _take(self, rank: bytes) -> bytes:
        begun = self._begun.pop(rank, None)
        if begun is None:
            return b""
        self._size -= len(begun.text)
        return bytes(begun.text)

    def _length(self, rank: bytes) -> int:
        return len(self._begun[rank].text)

    def _end(self, data: bytes) -> int:
        """The length of `data` without the beginning of a mark at its end."""
        at = data.rfind(self._prefix[:1], max(0, len(data) - len(self._prefix) - DIGITS))
        tail = data[at:] if at >= 0 else b""
        number = tail[len(self._prefix) :]
        torn = self._prefix.startswith(tail) or (
            tail.startswith(self._prefix) and (not number or number.isdigit())
        )
        return len(data) - len(tail) if torn else len(data)


def write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(1, view) :]
        except BlockingIOError:
            select.select([], [1], [])


def main() -> None:
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    lines = Lines(os.fsencode(sys.argv[1]))
    try:
        while True:
            ready, _, _ = select.select([0], [], [], lines.wait())
            if not ready:
                write(lines.overdue())
                continue
            data = os.read(0, 1 << 18)
            if not data:
                break
            write(lines.feed(data) + lines.overdue())
        write(lines.close())
    except BrokenPipeError:
        pass


if __name__ == "__main__":
    main()
