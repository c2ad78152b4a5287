"""Where the ranks of a job are that has been quiet for long, read back from the launcher's log.
Written by `quiet.sh`. Pure.

Facts only: what they mean is `diagnose.suspicion`'s to say. Tolerant: a line that is not understood
is passed over, and a report that is not whole is none. Danger: whoever runs in the launcher can
write such lines, so each is cut before it is read, and names are taken only where they are names.
"""

from __future__ import annotations

from typing import Final

import msgspec

from mpi_trainer.layout.agent.summary import Ranks, ranks

EVENT: Final = "mpi-agent| "
FORM: Final = "1"
"""the version of the form that is read here"""
LONGEST: Final = 4096
"""characters of a line; the agent writes no more bytes"""
MOST: Final = 16
"""places that the agent tells, and parts of one"""
_NAME: Final = 253


class Frame(msgspec.Struct, frozen=True):
    file: str
    line: int
    function: str


class Place(msgspec.Struct, frozen=True):
    """Where some ranks are. `on` are pods of the first few.

    `idle`: they have used next to no CPU while they were quiet. `same`: their Python programs have
    been in one call all the time between two looks. `ending`: those are over, and the processes are
    not. `mpi`: an MPI library is loaded. `frames` are those of the main thread, innermost first,
    `calls` what the innermost line with a source calls.
    """

    ranks: Ranks
    on: tuple[str, ...] = ()
    idle: bool = False
    same: bool = False
    ending: bool = False
    mpi: bool = False
    frames: tuple[Frame, ...] = ()
    calls: tuple[str, ...] = ()


class Quiet(msgspec.Struct, frozen=True):
    """All `ranks` ranks of a job have read and written nothing for so many seconds."""

    seconds: int
    ranks: int
    places: tuple[Place, ...]


class QuietReader:
    """Reads the launcher's lines, in order; `quiet` is what they say in the end."""

    def __init__(self) -> None:
        self.quiet: Quiet | None = None
        self._begun: Quiet | None = None
        self._groups = 0

    def read_line(self, line: str) -> bool:
        """Whether it has changed what is known."""
        if not line.startswith(EVENT):
            return False
        _, _, kind, rest = (*line[:LONGEST].split(" ", 4)[1:], "", "", "", "")[:4]
        before = self.quiet
        if kind == "quiet":
            self._begin(_fields(rest))
        elif kind == "place" and self._begun is not None:
            self._add(self._begun, _place(_fields(rest)))
        elif kind in ("moving", "start", "end", "lost"):
            self.quiet = self._begun = None
        return self.quiet != before

    def _begin(self, fields: dict[str, str]) -> None:
        self.quiet = self._begun = None
        seconds, count = _number(fields.get("seconds")), _number(fields.get("ranks"))
        self._groups = _number(fields.get("groups")) or 0
        if fields.get("form") == FORM and 0 < self._groups <= MOST and seconds and count:
            self._begun = Quiet(seconds, count, ())

    def _add(self, begun: Quiet, place: Place) -> None:
        known = msgspec.structs.replace(begun, places=(*begun.places, place))
        whole = len(known.places) == self._groups
        self._begun = None if whole else known
        if whole and sum(len(one.ranks) for one in known.places) == known.ranks:
            self.quiet = known


def _fields(text: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in text.split() if "=" in word)


def _place(fields: dict[str, str]) -> Place:
    frames = (_frame(one) for one in fields.get("frames", "").split("|")[:MOST])
    pods = fields.get("on", "").split(",")[:MOST]
    return Place(
        ranks=ranks(fields.get("ranks", "")),
        on=tuple(pod for pod in pods if is_name(pod)),
        idle=fields.get("idle") == "1",
        same=fields.get("same") == "1",
        ending=fields.get("ending") == "1",
        mpi=fields.get("mpi") == "1",
        frames=tuple(one for one in frames if one is not None),
        calls=tuple(one for one in fields.get("calls", "").split(",")[:MOST] if one),
    )


def _frame(text: str) -> Frame | None:
    """Of `FILE:LINE:FUNCTION`, whose first part may have been cut in front."""
    rest, _, function = text.rpartition(":")
    file, _, line = rest.rpartition(":")
    number = _number(line)
    return None if number is None or not file else Frame(file, number, function)


def is_name(text: str) -> bool:
    """Of a pod."""
    letters = text.replace("-", "").replace(".", "")
    return len(text) <= _NAME and letters.isascii() and letters.isalnum()


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 16 else None
