"""How far a reader has come in a job's log, as a text that they bring back. Pure.

Of each pod it has a second, how many of its lines from then on were given, and a mark of the last
one. The same lines come again in the same order when reading begins at that second, so as many are
passed over. Guarantee: no line is given twice and none is left out. Where a node has removed lines
meanwhile, the mark shows it, and what is there still is given.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from datetime import UTC, datetime
from typing import Final

import msgspec

from mpi_trainer.api.yaml import typed
from mpi_trainer.sdk.backends.backend import LogLine
from mpi_trainer.server.problems import refused

LONGEST: Final = 8 * 1024
"""characters: it has to fit into a header or an address"""
MOST_HELD: Final = 20_000
MOST_HELD_BYTES: Final = 16 << 20
"""characters, of all pods: a position that somebody made up can ask for any number of lines"""
_MOST_BYTES: Final = 128 * 1024
"""unpacked; every batch of lines has all of it written anew"""
_LATEST: Final = 253_402_300_799
"""the last second of the year 9999"""
_MARGIN: Final = 1  # two streams of one container may be a little out of order
MISSING: Final = "lines before this one are missing: the node has removed them"


class PodPlace(msgspec.Struct, frozen=True, array_like=True):
    second: int
    given: int
    mark: int
    attempt: int


class Position(msgspec.Struct, frozen=True, array_like=True):
    """Of the job with this uid; another one of its name is not meant."""

    uid: str
    pods: dict[str, PodPlace]

    @property
    def since(self) -> datetime | None:
        """From when on to read."""
        first = min((one.second for one in self.pods.values()), default=None)
        return None if first is None else datetime.fromtimestamp(first, UTC)


class Place:
    """In the log of one pod."""

    def __init__(self) -> None:
        self._newest = 0
        self._counts: dict[int, int] = {}
        self._mark = 0
        self._attempt = 1

    def note(self, line: LogLine) -> None:
        second = int(line.time.timestamp())
        if second > self._newest:
            self._newest = second
            oldest = second - _MARGIN
            self._counts = {s: n for s, n in self._counts.items() if s >= oldest}
        if second >= self._newest - _MARGIN:
            self._counts[second] = self._counts.get(second, 0) + 1
        self._mark, self._attempt = _mark(line), line.attempt

    def now(self) -> PodPlace:
        second = self._newest - _MARGIN
        return PodPlace(second, sum(self._counts.values()), self._mark, self._attempt)


class Places:
    """In the logs of all pods of a job. Lines that are read from a position on are given to `take`,
    each of them, also those that nobody wants to see."""

    def __init__(self, uid: str, position: Position | None = None) -> None:
        self._uid = uid
        self._pods: dict[str, Place] = {}
        self._before = dict(position.pods) if position else {}
        self._held: dict[str, list[LogLine]] = {}
        self._held_bytes = 0
        self._newest = max((one.attempt for one in self._before.values()), default=0)

    def now(self) -> Position:
        """Behind the last line that `take` has given."""
        found = {pod: place.now() for pod, place in self._pods.items()}
        return Position(self._uid, found | self._before)

    def take(self, line: LogLine) -> list[LogLine]:
        """The lines that were not given before, now that this one has come."""
        pod = f"{line.attempt}:{line.pod}"
        before = self._before.get(pod)
        if before is None:
            self._pods.setdefault(pod, Place()).note(line)
            return [line]
        second = int(line.time.timestamp())
        if second < before.second or before.attempt < self._newest:
            return []  # an attempt is told before the next one begins
        held = self._held.setdefault(pod, [])
        late = second > before.second + 2 * _MARGIN
        held.append(line)
        self._held_bytes += len(line.text)
        full = len(held) >= MOST_HELD or self._held_bytes > MOST_HELD_BYTES
        if len(held) < before.given and not full and not late:
            return []
        return self._given(pod)

    def rest(self) -> list[LogLine]:
        """At the end of the log: what is held of pods that have fewer lines than were given."""
        return [line for pod in tuple(self._held) for line in self._given(pod)]

    def _given(self, pod: str) -> list[LogLine]:
        held, before = self._held.pop(pod), self._before.pop(pod)
        place = self._pods.setdefault(pod, Place())
        for line in held:
            self._held_bytes -= len(line.text)
            place.note(line)
        return _after(held, before)


def _after(held: list[LogLine], place: PodPlace) -> list[LogLine]:
    marks = [_mark(line) for line in held]
    if marks and len(held) == place.given and marks[-1] == place.mark:
        return []
    if place.mark in marks:
        last = len(marks) - 1 - marks[::-1].index(place.mark)
        return held[last + 1 :]
    first = msgspec.structs.replace(held[0], notes=(MISSING, *held[0].notes))
    return [first, *held[1:]]


def _mark(line: LogLine) -> int:
    return zlib.crc32(f"{line.time.timestamp()} {line.rank} {line.text}".encode())


def written(position: Position) -> str:
    """Empty where it would be too long to be brought back."""
    data = msgspec.json.encode(position)
    if len(data) > _MOST_BYTES:
        return ""
    packed = zlib.compress(data, 6)
    text = base64.urlsafe_b64encode(packed).decode().rstrip("=")
    return text if len(text) <= LONGEST else ""


def read(text: str) -> Position:
    try:
        packed = base64.b64decode(text[:LONGEST] + "=" * (-len(text) % 4), b"-_", validate=True)
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(packed, _MOST_BYTES)
        found = typed.decode(data, Position)
        seconds = (one.second for one in found.pods.values())
        if len(text) > LONGEST or not all(-_MARGIN <= one <= _LATEST for one in seconds):
            raise ValueError
        return found
    except (binascii.Error, zlib.error, msgspec.MsgspecError, ValueError):
        raise refused(
            400,
            "bad-request",
            "the position to go on from is none of this stream's",
            "Leave out Last-Event-ID and lastEventId to begin anew.",
        ) from None
