"""Why a job in the foreground failed, from what its last attempt printed and how it ended.

Memory is bounded: of what an attempt prints only the end is kept, as of a job in the background.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec

from mpi_trainer.api.kinds import conditions
from mpi_trainer.decide import reasons
from mpi_trainer.diagnose.finding import Findings
from mpi_trainer.diagnose.rank_lines import Line
from mpi_trainer.local.execute import reports

ROOM: Final = 16 << 20
LONGEST: Final = 2000
OVERHEAD: Final = 120
"""bytes that a line takes beside its text, so that many short ones stay within the room too"""


class PrintedLines:
    """The end of what the attempt that runs has printed, in about `ROOM` bytes."""

    def __init__(self) -> None:
        self._lines: deque[tuple[str, int | None]] = deque()
        self._size = 0

    def hear(self, report: reports.Report) -> None:
        if isinstance(report, reports.EventReport) and report.reason == reasons.RESTARTING:
            self._lines.clear()
            self._size = 0
        if not isinstance(report, Line):
            return
        text = report.text[:LONGEST]
        self._lines.append((text, report.rank))
        self._size += len(text) + OVERHEAD
        while self._size > ROOM:
            self._size -= len(self._lines.popleft()[0]) + OVERHEAD

    def findings(self, ended: reports.JobEnded) -> Findings:
        """The most likely cause first; empty where the job has not failed by itself."""
        if ended.state != conditions.FAILED or ended.stopped:
            return ()
        # The rules take a while to load, and most runs end well.
        from mpi_trainer.diagnose import cause, facts
        from mpi_trainer.diagnose.log_reader import LogReader

        blamed = ended.cause or reports.FailureCause("")
        kills = {rank.pod: rank.memory_kills for rank in ended.ranks}
        ends = facts.of_ends(ended.pods, ended.ranks, blamed.rank, kills)
        launchers = {pod.name for pod in ended.pods if pod.role == "launcher"}
        known = msgspec.structs.replace(
            ends,
            reason=ended.reason,
            message=ended.message,
            blamed_rank=blamed.rank,
            blamed_host="" if blamed.host in launchers else blamed.host,
        )
        reader = LogReader(known.hosts)
        for text, rank in self._lines:
            reader.read_line(text, rank)
        return cause.concluded(reader, known)
