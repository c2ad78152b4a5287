"""What all live streams of one server share, and how many there may be."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from mpi_trainer.server.live.access import SECONDS, Access
from mpi_trainer.server.live.shared import SharedWatches
from mpi_trainer.server.problems import Refused, problem

STREAMS: Final = 2000
STREAMS_EACH: Final = 50
OLDEST: Final = 3600.0


class LiveSettings(msgspec.Struct, frozen=True):
    """`streams` in all, `each` of one caller; `heartbeat` seconds between signs of life, `stalled`
    seconds without room for more until a reader is cut off, `oldest` seconds until a stream ends
    and is to be opened anew; `review` seconds for which an answer about rights is believed."""

    streams: int = STREAMS
    each: int = STREAMS_EACH
    heartbeat: float = 15.0
    stalled: float = 20.0
    oldest: float = OLDEST
    review: float = SECONDS


class Hub:
    def __init__(self, settings: LiveSettings) -> None:
        self.settings = settings
        self.access = Access(settings.review)
        self.watches = SharedWatches()
        self.stopping = asyncio.Event()
        self._open: Counter[str] = Counter()

    @property
    def streams(self) -> int:
        return self._open.total()

    @contextmanager
    def counted(self, caller: str) -> Iterator[None]:
        """Refuses where there are enough already."""
        if self.streams >= self.settings.streams:
            detail = "the server has as many live streams as it can serve"
            raise _refused(503, "busy", detail, "Try again later.")
        if self._open[caller] >= self.settings.each:
            detail = f"you have {self.settings.each} live streams already"
            raise _refused(429, "rate", detail, "Close some of them.")
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]


def _refused(status: int, name: str, detail: str, hint: str) -> Refused:
    return Refused(problem(status, name, detail, hint), (("Retry-After", "10"),))
