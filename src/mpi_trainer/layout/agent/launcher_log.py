"""What only the launcher's log tells of a failure: who called MPI_Abort, or lost another rank, and
where no program was, or no script.

Hydra (MPICH, Intel MPI) ends every rank at once, and whatever would have recorded their ends with
them; what is left is the line that the rank's own MPI library has printed before. Open MPI's
daemons look for the program themselves, so nothing of ours runs where it is missing, and its ranks
end themselves with a code when another's connection closes. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

# `Abort(42) on node 1 (rank 1 in comm 0): application called MPI_Abort...`; the node is the rank
# in the world, the other one that in the communicator.
_ABORT = re.compile(r"Abort\((?P<code>\d{1,10})\) on node (?P<rank>\d{1,7}) \(rank \d+ in comm ")
# Open MPI's box: `Executable: /app/train` and `Node: pi-worker-1`, on neighbouring lines.
_PROGRAM = re.compile(r"^ *Executable: (?P<program>\S.{0,400})$")
# Open MPI 5: `[host:00000] *** An error occurred in Socket closed`, and on the next line
# `*** reported by process [4020764673,0]`: the job, and the rank that lost another.
_CLOSED = re.compile(r"\*\*\* An error occurred in Socket closed$")
_REPORTER = re.compile(r"\*\*\* reported by process \[\d+,(?P<rank>\d{1,7})\]$")
_NODE = re.compile(r"^ *Node: {1,20}(?P<host>[A-Za-z0-9][-.A-Za-z0-9]{0,252})$")

# Python's own, before any code of the job runs.
_SCRIPT = re.compile(r"can't open file '[^']{1,400}': \[Errno (?:2|13)\] [A-Z][a-z ]{1,40}")


class Abort(msgspec.Struct, frozen=True):
    rank: int
    code: int


class NoProgram(msgspec.Struct, frozen=True):
    """Open MPI could not start `program` on `pod`; other pods may lack it too."""

    program: str
    pod: str


class NoScript(msgspec.Struct, frozen=True):
    """Python could not read the program that it was given; in its own words."""

    said: str


class PeerLost(msgspec.Struct, frozen=True):
    """`rank` has ended itself, since another was gone."""

    rank: int


LoggedCause = Abort | NoProgram | NoScript | PeerLost


class CauseReader:
    """Reads a log line by line. The first cause counts: what comes later may follow from it."""

    def __init__(self) -> None:
        self.cause: LoggedCause | None = None
        self._program = self._pod = ""
        self._closed = False

    def read_line(self, line: str) -> None:
        if self.cause is None:
            self.cause = self._cause(line.rstrip())

    def _cause(self, line: str) -> LoggedCause | None:
        abort = _ABORT.search(line)
        if abort is not None:
            return Abort(int(abort["rank"]), int(abort["code"]))
        script = _SCRIPT.search(line)
        if script is not None:
            return NoScript(script[0])
        node, program = _NODE.match(line), _PROGRAM.match(line)
        before = self._program, self._pod
        self._program = program["program"] if program is not None else ""
        self._pod = node["host"].partition(".")[0] if node is not None else ""
        missing, pod = self._program or before[0], self._pod or before[1]
        if missing and pod:
            return NoProgram(missing, pod)
        reporter = _REPORTER.search(line) if self._closed else None
        if reporter is not None:
            return PeerLost(int(reporter["rank"]))
        self._closed = _CLOSED.search(line) is not None
        return None


def first_cause(lines: Iterable[str]) -> LoggedCause | None:
    """The first cause in a log that has been written."""
    reader = CauseReader()
    for line in lines:
        reader.read_line(line)
    return reader.cause
