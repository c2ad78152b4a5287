"""Puts the pieces of each rank's lines together again: standard input to standard output.

    python3 -I -S lines hydra PREFIX
    python3 -I -S lines openmpi|openmpi-marked WORD

mpirun writes a mark before every piece that a rank wrote, also before one that goes on in the
middle of a line. Here the marks are taken out, and what a rank has begun waits for its newline, so
that no line of another rank comes in between.

Hydra's mark is `PREFIX` RANK `>`, and holds until the next one. Open MPI 4's is its own, and holds
for one line: what follows without a mark is mpirun's. Its ranks' text has `WORD` in it, see
relay.py, which is taken out too. With `openmpi-marked` every line keeps its mark.

Guarantee: every other byte is handed on, those of a rank in their order. What a rank has begun
waits no longer than `SILENCE` seconds after its last piece, or after its first where it draws over
its line (a carriage return), as prompts and progress bars do; seconds in which nobody reads what is
written here do not count.
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
LONGEST_MARK = 48


class Clock:
    """Seconds, less those in which nobody read what was written to `target`."""

    def __init__(self, target: int = 1) -> None:
        self._target = target
        self._waited = 0.0

    def now(self) -> float:
        return time.monotonic() - self._waited

    def write(self, data: bytes) -> None:
        before = time.monotonic()
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._target, view) :]
            except BlockingIOError:
                select.select([], [self._target], [])
        self._waited += time.monotonic() - before


class Begun:
    """An unfinished line: when its first and its last piece came, and whether it is drawn over."""

    def __init__(self, now: float) -> None:
        self.text = bytearray()
        self.first = self.last = now
        self.drawn = False

    def add(self, piece: bytes, now: float) -> None:
        self.text += piece
        self.last = now
        self.drawn = self.drawn or b"\r" in piece

    def due(self) -> float:
        return (self.first if self.drawn else self.last) + SILENCE


class Lines:
    """`whose` is in one pair of parentheses of a mark; `torn` is the beginning of a mark."""

    def __init__(self, clock: Clock, mark: bytes, torn: bytes) -> None:
        self._clock = clock
        self._mark = re.compile(mark)
        self._torn = re.compile(torn)
        self._whose = b""  # whose piece goes on until the next mark; mpirun's own before the first
        self._cut = b""  # what may be the beginning of a mark, and since when
        self._cut_at = 0.0
        self._begun: dict[bytes, Begun] = {}
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        """What can be handed on now."""
        data = self._cut + data
        end = self._end(data)
        data, self._cut, self._cut_at = data[:end], data[end:], self._clock.now()
        first, *rest = self._mark.split(data)
        given = self._pieces(self._whose, first)
        for whose, piece in zip(rest[::2], rest[1::2]):  # noqa: B905 # not before Python 3.10
            given += self._pieces(whose, piece)
        return b"".join(given)

    def wait(self) -> "float | None":
        """Seconds until something has waited long enough; none where nothing waits."""
        due = [one.due() for one in self._begun.values()]
        if self._cut:
            due.append(self._cut_at + SILENCE)
        return max(0.0, min(due) - self._clock.now()) if due else None

    def overdue(self) -> bytes:
        """What has waited long enough."""
        now = self._clock.now()
        given = []
        if self._cut and self._cut_at + SILENCE <= now:
            cut, self._cut = self._cut, b""
            given = [*self._pieces(self._whose, cut), self._flush(self._whose)]
        due = [whose for whose, one in self._begun.items() if one.due() <= now]
        return b"".join([*given, *map(self._flush, due)])

    def close(self) -> bytes:
        """All that is left."""
        rest, self._cut = self._cut, b""
        given = self._pieces(self._whose, rest)
        return b"".join([*given, *(self._printed(one, self._take(one)) for one in [*self._begun])])

    def _pieces(self, whose: bytes, piece: bytes) -> "list[bytes]":
        """What can be handed on of what comes between two marks."""
        self._whose = whose
        return self._piece(whose, piece)

    def _printed(self, whose: bytes, text: bytes) -> bytes:
        return text

    def _whole(self, text: bytes) -> int:
        """How much of an unfinished text can be handed on."""
        return len(text)

    def _piece(self, whose: bytes, piece: bytes) -> "list[bytes]":
        end = piece.rfind(b"\n") + 1
        given = [self._printed(whose, self._take(whose) + piece[:end])] if end else []
        if end < len(piece):
            begun = self._hold(whose, piece[end:])
            if len(begun.text) > LONGEST:
                given.append(self._flush(whose))
            elif self._size > MOST:
                given.append(self._flush(max(self._begun, key=self._length)))
        return given

    def _hold(self, whose: bytes, piece: bytes) -> Begun:
        now = self._clock.now()
        begun = self._begun.setdefault(whose, Begun(now))
        begun.add(piece, now)
        self._size += len(piece)
        return begun

    def _take(self, whose: bytes) -> bytes:
        begun = self._begun.pop(whose, None)
        if begun is None:
            return b""
        self._size -= len(begun.text)
        return bytes(begun.text)

    def _flush(self, whose: bytes) -> bytes:
        text = self._take(whose)
        end = self._whole(text)
        if end < len(text):
            self._hold(whose, text[end:])
        return self._printed(whose, text[:end])

    def _length(self, whose: bytes) -> int:
        return len(self._begun[whose].text)

    def _end(self, data: bytes) -> int:
        """The length of `data` without the beginning of a mark at its end."""
        found = self._torn.search(data, max(0, len(data) - LONGEST_MARK))
        return found.start() if found else len(data)


class OpenMpiLines(Lines):
    def __init__(self, clock: Clock, word: bytes, *, marked: bool) -> None:
        torn = rb"\[(\d{1,10}(,(\d{1,10}(\](<[a-z]{0,6}>?)?)?)?)?)?\Z"
        super().__init__(clock, rb"(\[\d+,\d+\]<std(?:out|err|diag)>:)", torn)
        self._word = word
        self._marked = marked

    def _pieces(self, whose: bytes, piece: bytes) -> "list[bytes]":
        end = piece.find(b"\n") + 1
        if not end:
            return super()._pieces(whose, piece)
        given = self._piece(whose, piece[:end])
        return given + super()._pieces(b"", piece[end:])

    def _printed(self, whose: bytes, text: bytes) -> bytes:
        text = text.replace(self._word, b"")
        return whose + text if self._marked and text else text

    def _whole(self, text: bytes) -> int:
        at = text.rfind(self._word[:1], max(0, len(text) - len(self._word) + 1))
        return at if at >= 0 and self._word.startswith(text[at:]) else len(text)


def hydra_lines(clock: Clock, prefix: bytes) -> Lines:
    begins = (re.escape(prefix[:end]) for end in range(len(prefix), 0, -1))
    torn = rb"(?:%b\d{1,12}|%b)\Z" % (re.escape(prefix), b"|".join(begins))
    return Lines(clock, re.escape(prefix) + rb"(\d+)>", torn)


def join(kind: str, word: bytes, source: int = 0, target: int = 1) -> None:
    """Until nothing more comes, or nobody reads."""
    clock = Clock(target)
    if kind == "hydra":
        lines = hydra_lines(clock, word)
    else:
        lines = OpenMpiLines(clock, word, marked=kind == "openmpi-marked")
    try:
        while True:
            ready, _, _ = select.select([source], [], [], lines.wait())
            if not ready:
                clock.write(lines.overdue())
                continue
            data = os.read(source, 1 << 18)
            if not data:
                break
            clock.write(lines.feed(data) + lines.overdue())
        clock.write(lines.close())
    except BrokenPipeError:
        pass


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    join(sys.argv[1], os.fsencode(sys.argv[2]))
