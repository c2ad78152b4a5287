"""Who called MPI_Abort, where only the log tells. Pure.

Hydra (MPICH, Intel MPI) ends every rank at once, and whatever would have recorded their ends with
them. What is left is the line that the MPI library of the rank itself has printed before. Open MPI
needs none of this: its ranks' ends are on record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

# `Abort(42) on node 1 (rank 1 in comm 0): application called MPI_Abort...`; the node is the rank
# in the world, the other one that in the communicator.
_ABORT = re.compile(r"Abort\((?P<code>\d{1,10})\) on node (?P<rank>\d{1,7}) \(rank \d+ in comm ")


class Abort(msgspec.Struct, frozen=True):
    rank: int
    code: int


def first(lines: Iterable[str]) -> Abort | None:
    """The first that is told of; others that follow may have failed because of it."""
    found = (match for line in lines if (match := _ABORT.search(line)) is not None)
    return next((Abort(int(m["rank"]), int(m["code"])) for m in found), None)
