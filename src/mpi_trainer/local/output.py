"""Lines out of a pod's byte stream, and the rank that each one came from. Pure but for its buffer.

mpirun marks every piece that a rank wrote, and pieces of several ranks can share a line; here each
rank's pieces are put together again. A line without an end is given out when its stream closes or
when it grows beyond `LONGEST`: nothing is lost. Bytes that are not UTF-8 become replacement
characters.
"""

from __future__ import annotations

import re
from typing import Literal

from mpi_trainer.layout.mpi import RANK_MARK
from mpi_trainer.local.reports import Line

LONGEST = 64 * 1024

_MARK = re.compile(RANK_MARK.encode())
# Harmless lines that MPI prints by chance and that would only frighten a reader.
_NOISE = re.compile(rb"plm:(?:ssh|rsh): Warning: setpgid\(.*\) failed in parent")

Name = Literal["stdout", "stderr"]


class Stream:
    """One of a pod's two streams."""

    def __init__(self, pod: str, name: Name) -> None:
        self._pod = pod
        self._name = name
        self._rest = b""
        self._begun: dict[int | None, bytes] = {}
        self._spaced: bool | None = None

    def feed(self, data: bytes) -> list[Line]:
        # prterun writes NUL bytes after its help texts.
        *lines, self._rest = (self._rest + data.replace(b"\0", b"")).split(b"\n")
        given = [line for text in lines for line in self._ended(text)]
        if len(self._rest) > LONGEST:
            cut = _whole_characters(self._rest)
            text, self._rest = self._rest[:cut], self._rest[cut:]
            given += self._ended(text)
        return given

    def close(self) -> list[Line]:
        rest, self._rest = self._rest, b""
        given = self._ended(rest) if rest else []
        begun, self._begun = self._begun, {}
        return given + [self._line(rank, text) for rank, text in begun.items() if text]

    def _ended(self, text: bytes) -> list[Line]:
        """The line that ends here; pieces of other ranks before it are kept for later."""
        pieces = self._pieces(text)
        for rank, piece in pieces[:-1]:
            self._begun[rank] = self._begun.get(rank, b"") + piece
        rank, piece = pieces[-1]
        whole = self._begun.pop(rank, b"") + piece
        if rank is None and _NOISE.search(whole):
            return []
        return [self._line(rank, whole)]

    def _pieces(self, text: bytes) -> list[tuple[int | None, bytes]]:
        marks = list(_MARK.finditer(text))
        ends = [*(m.start() for m in marks[1:]), len(text)]
        pieces: list[tuple[int | None, bytes]] = [
            (int(m["rank"]), self._without_space(text[m.end() : end]))
            for m, end in zip(marks, ends, strict=False)
        ]
        before = text[: marks[0].start()] if marks else text
        return [(None, before), *pieces] if before or not pieces else pieces

    def _without_space(self, piece: bytes) -> bytes:
        """Open MPI 5 puts a space behind every mark; one mark without it proves another MPI."""
        if self._spaced is not False:
            self._spaced = piece.startswith(b" ")
        return piece[1:] if self._spaced else piece

    def _line(self, rank: int | None, text: bytes) -> Line:
        return Line(self._pod, self._name, rank, text.removesuffix(b"\r").decode(errors="replace"))


def _whole_characters(data: bytes) -> int:
    """The length of `data` without a UTF-8 character that is cut off at its end."""
    size = len(data)
    return next((i for i in range(size - 1, size - 4, -1) if data[i] & 0xC0 == 0xC0), size)
