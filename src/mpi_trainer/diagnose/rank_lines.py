"""Lines out of a pod's byte stream, and the rank that each one came from. Pure but for its buffer.

mpirun marks every piece that a rank wrote, and pieces of several ranks can share a line; here each
rank's pieces are put together again. A line without an end is given out when its stream closes or
when it grows beyond `LONGEST`, which is what each rank can make us hold, or all of them when all
together are more than `held`: nothing is lost. Bytes
that are not UTF-8 become replacement characters.

The agent writes whole lines into the same stream, whatever a rank has begun there; they are taken
out wherever they are.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.layout.mpi import RANK_MARK

LONGEST = 16 << 20

_MARK = re.compile(RANK_MARK.encode())
# Harmless lines that MPI prints by chance and that would only frighten a reader.
_NOISE = re.compile(rb"plm:(?:ssh|rsh): Warning: setpgid\([0-9, -]{1,40}\) failed in parent")
# The agent's events, which have their own place; what is before one goes on after it.
_EVENT = re.compile(rb"(mpi-agent\| \d+ \S+ [a-z]+ [^\n]*)\n")
# Open MPI 5 closes a stream with a mark and nothing or a zero byte behind it, and the agent may
# speak next.
_SPOKEN = re.compile(
    rb"(?m)^(?:%b ?\0?)+(?=mpi-agent: )" % RANK_MARK.replace("?P<rank>", "").encode()
)

Name = Literal["stdout", "stderr"]
Role = Literal["launcher", "worker"]


class Line(msgspec.Struct, frozen=True, tag="line"):
    """One line that a pod wrote; `rank` where MPI said whose it is."""

    pod: str
    role: Role
    stream: Name
    rank: int | None
    text: str


class RankLines:
    """One of a pod's two streams. `events` are the agent's in what was fed last."""

    def __init__(self, pod: str, role: Role, name: Name, held: int = bounds.HELD) -> None:
        self.events: list[str] = []
        self._pod = pod
        self._role = role
        self._name = name
        self._rest = bytearray()  # of the last line, in which there is no newline yet
        self._open: int | None = None  # whose line was cut and goes on
        self._begun: dict[int | None, bytearray] = {}
        self._most_held = held
        self._held = 0  # bytes in `_begun`
        self._spaced: bool | None = None

    def feed(self, data: bytes) -> list[Line]:
        given: list[Line] = []
        self.events = []
        end = data.rfind(b"\n") + 1
        if end:
            whole = bytes(self._rest) + data[:end]
            self._rest = bytearray()
            if b"mpi-agent" in whole:
                self.events = [one.decode(errors="replace") for one in _EVENT.findall(whole)]
                whole = _SPOKEN.sub(b"", _EVENT.sub(b"", whole))
            *lines, rest = whole.split(b"\n")
            given = [line for text in lines for line in self._written(text, ended=True)]
            self._rest += rest
        self._rest += data[end:]
        while len(self._rest) > LONGEST:
            cut = _clean_cut(self._rest)
            text, self._rest = bytes(self._rest[:cut]), self._rest[cut:]
            given += self._written(text, ended=False)
        return given

    def close(self) -> list[Line]:
        rest, self._rest = bytes(self._rest), bytearray()
        given = self._written(rest, ended=True) if rest else []
        given += self._all_begun()
        # Open MPI 5 closes a stream with a mark and nothing behind it, or a zero byte.
        return [line for line in given if line.text.strip("\0")]

    def _written(self, text: bytes, *, ended: bool) -> list[Line]:
        """The line of the last rank in `text`; pieces of others before it wait for their end."""
        goes_on = self._open is not None and not text
        pieces = self._pieces(text)
        given = []
        for rank, piece in pieces[:-1]:
            begun = self._begun.setdefault(rank, bytearray())
            begun += piece
            self._held += len(piece)
            if len(begun) > LONGEST:
                given.append(self._line(rank, self._taken(rank)))
        rank, piece = pieces[-1]
        self._open = None if ended else rank
        whole = self._taken(rank) + piece
        if not ended and len(pieces) > 1 and len(whole) <= LONGEST:
            # Pieces of several ranks were cut, and this rank's line is not too long.
            self._begun[rank] = bytearray(whole)
            self._held += len(whole)
            return given
        if self._held > self._most_held:
            given += self._all_begun()
        if (goes_on and not whole) or (rank is None and _NOISE.search(whole)):
            return given
        return [*given, self._line(rank, whole)]

    def _taken(self, rank: int | None) -> bytes:
        """What the rank has begun."""
        found = bytes(self._begun.pop(rank, b""))
        self._held -= len(found)
        return found

    def _all_begun(self) -> list[Line]:
        return [self._line(rank, self._taken(rank)) for rank in tuple(self._begun)]

    def _pieces(self, text: bytes) -> list[tuple[int | None, bytes]]:
        marks = list(_MARK.finditer(text))
        ends = [*(m.start() for m in marks[1:]), len(text)]
        pieces: list[tuple[int | None, bytes]] = [
            (int(m["rank"]), self._without_space(text[m.end() : end]))
            for m, end in zip(marks, ends, strict=False)
        ]
        before = text[: marks[0].start()] if marks else text
        if self._open is None:
            before = before.replace(b"\0", b"")  # prterun writes some after its help texts
        return [(self._open, before), *pieces] if before or not pieces else pieces

    def _without_space(self, piece: bytes) -> bytes:
        """Open MPI 5 puts a space behind every mark; one mark without it proves another MPI."""
        if self._spaced is not False:
            self._spaced = piece.startswith(b" ")
        return piece[1:] if self._spaced else piece

    def _line(self, rank: int | None, text: bytes) -> Line:
        shown = text.removesuffix(b"\r").decode(errors="replace")
        return Line(self._pod, self._role, self._name, rank, shown)


def _clean_cut(data: bytes | bytearray) -> int:
    """Where to cut a line that is too long: neither in a mark nor in a UTF-8 character."""
    mark = data.rfind(b"[", LONGEST - 64, LONGEST)
    if mark > 0:
        return mark
    return next((i for i in range(LONGEST, LONGEST - 4, -1) if data[i] & 0xC0 != 0x80), LONGEST)
