"""Which lines a query takes, whatever pod they come from: by rank, time, text and level."""

from __future__ import annotations

from mpi_trainer.diagnose.log_levels import LEVELS, LevelFilter
from mpi_trainer.sdk.backends.backend import LogQuery
from mpi_trainer.sdk.errors import JobError


class LineFilter:
    """For one reading: the level of a line can be that of the line before."""

    def __init__(self, query: LogQuery) -> None:
        if query.level and query.level not in LEVELS:
            raise JobError(
                f"{query.level!r} is not a level of log lines", f"Use one of {', '.join(LEVELS)}."
            )
        self._rank = query.rank
        self._since = query.since.timestamp() if query.since else 0.0
        self._until = query.until.timestamp() if query.until else float("inf")
        self._pattern = query.pattern()
        self._level = LevelFilter(query.level) if query.level else None

    def takes(self, pod: str, rank: int | None, seconds: float, text: str) -> bool:
        """`seconds` is its time since the epoch."""
        return (
            (self._rank is None or rank == self._rank)
            and self._since <= seconds <= self._until
            and (self._level is None or self._level.takes((pod, rank), text))
            and (self._pattern is None or self._pattern.search(text) is not None)
        )
