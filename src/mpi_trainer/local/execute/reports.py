"""The reports of a supervisor to its client, one JSON value a line, and the orders to it.

The stream is ordered and complete: it ends with exactly one `JobEnded`, or with `CannotRun` where
the job could not be run at all. One that stops without either means that the supervisor died.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mpi_trainer.api.yaml import typed
from mpi_trainer.diagnose.rank_lines import Line

STOP = b"s"
KILL = b"k"


class StateChanged(msgspec.Struct, frozen=True, tag="moved"):
    """The job came to another state."""

    state: str
    reason: str
    message: str


class EventReport(msgspec.Struct, frozen=True, tag="event"):
    """What a cluster would record as an Event of the job."""

    weight: str
    reason: str
    message: str


class Note(msgspec.Struct, frozen=True, tag="note"):
    text: str


class RankRow(msgspec.Struct, frozen=True):
    """A rank of the last attempt, for the table at the end; `end` in words, and as values.

    `memory_kills`: processes that the kernel has killed for memory in its pod, None where that is
    not counted."""

    rank: int
    pod: str
    address: str
    end: str
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    memory_kills: int | None = None


class FailureCause(msgspec.Struct, frozen=True):
    """Whose fault it was that the last attempt failed: a rank's, a host's, or nobody's."""

    reason: str
    rank: int | None = None
    host: str = ""


class PodEnd(msgspec.Struct, frozen=True):
    """How a pod of the attempt that failed had ended by then."""

    name: str
    role: str
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""


class JobEnded(msgspec.Struct, frozen=True, tag="ended"):
    state: str
    reason: str
    message: str
    ranks: tuple[RankRow, ...]
    seconds: float
    stopped: bool = False
    cause: FailureCause | None = None
    pods: tuple[PodEnd, ...] = ()


class CannotRun(msgspec.Struct, frozen=True, tag="broken"):
    """The job could not be run here."""

    problem: str
    hint: str = ""


Report = Line | StateChanged | EventReport | Note | JobEnded | CannotRun

_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[Report] = typed.decoder(Report)


def encode(reports: Sequence[Report]) -> bytes:
    return b"".join(_ENCODER.encode(report) + b"\n" for report in reports)


def decode(line: bytes) -> Report:
    return _DECODER.decode(line)
