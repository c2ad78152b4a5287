"""What events of live streams carry, beside the values of single answers."""

from __future__ import annotations

import msgspec

from mpi_trainer.server.values import JobItem, LogLine, State, Value


class LiveJobs(Value, frozen=True):
    """All jobs that the stream is about, as they are now: forget those of before."""

    items: tuple[JobItem, ...]


class DeletedJob(Value, frozen=True):
    kind: str
    namespace: str
    name: str
    uid: str


class LiveLines(Value, frozen=True):
    """Lines in the order of their coming; `skipped` counts those before them that are gone."""

    items: tuple[LogLine, ...]
    skipped: int


class LogEnd(Value, frozen=True):
    """The job has ended, and all that it wrote was sent."""

    state: State


class Cut(Value, frozen=True):
    """The reader was too slow and is cut off; `position` is where to go on."""

    position: str


class Sent(msgspec.Struct, frozen=True):
    """One event. `data` is a value of the API, or JSON that many readers share; `id` is a position
    to go on from, where it has one."""

    event: str
    data: object
    id: str = ""


class Shared(msgspec.Struct, frozen=True):
    """JSON in parts that other readers have too, so that a large one costs each of them little."""

    parts: tuple[bytes, ...]


def jobs(items: tuple[bytes, ...]) -> Shared:
    """`LiveJobs` of jobs that are JSON already."""
    parts: list[bytes] = [b'{"items":[']
    for item in items:
        parts += (item, b",")
    if items:
        parts.pop()
    return Shared((*parts, b"]}"))
