"""What only the launcher's log tells of a failure: who called MPI_Abort, where no program was.

Hydra (MPICH, Intel MPI) ends every rank at once, and whatever would have recorded their ends with
them; what is left is the line that the rank's own MPI library has printed before. Open MPI's
daemons look for the program themselves, so nothing of ours runs where it is missing. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

# `Abort(42) on node 1 (rank 1 in comm 0): application called MPI_Abort...`; the node is the rank
# in the world, the other one that in the communicator.
_ABORT = re.compile(r"Abort\((?P<code>\d{1,10})\) on node (?P<rank>\d{1,7}) \(rank \d+ in comm ")
# Open MPI's box: `Executable: /app/train`, and on the next line `Node: pi-worker-1`.
_PROGRAM = re.compile(r"^ *Executable: (?P<program>\S.{0,400})$")
_NODE = re.compile(r"^ *Node: (?P<host>[A-Za-z0-9][-.A-Za-z0-9]{0,252})$")


class Abort(msgspec.Struct, frozen=True):
    rank: int
    code: int


class NoProgram(msgspec.Struct, frozen=True):
    """Open MPI could not start `program` on `pod`; other pods may lack it too."""

    program: str
    pod: str


Word = Abort | NoProgram


class Listener:
    """Hears a log line by line. The first word counts: what follows may follow from it."""

    def __init__(self) -> None:
        self.word: Word | None = None
        self._program = ""

    def hear(self, line: str) -> None:
        if self.word is None:
            self.word = self._word(line.rstrip())

    def _word(self, line: str) -> Word | None:
        abort = _ABORT.search(line)
        if abort is not None:
            return Abort(int(abort["rank"]), int(abort["code"]))
        node = _NODE.match(line) if self._program else None
        if node is not None:
            return NoProgram(self._program, node["host"].partition(".")[0])
        program = _PROGRAM.match(line)
        self._program = program["program"] if program is not None else ""
        return None


def first(lines: Iterable[str]) -> Word | None:
    """The first word in a log that has been written."""
    listener = Listener()
    for line in lines:
        listener.hear(line)
    return listener.word
