"""The last lines of the attempt that runs, kept with the job when it ends; and why it failed.

The whole log is on this machine too, in files of bounded size; these lines are what `describe`
shows, and what is left of an early attempt once a later one has filled the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import msgspec

from mpi_trainer.api.kinds import conditions
from mpi_trainer.decide import history
from mpi_trainer.decide.history import History, LogTail
from mpi_trainer.diagnose.rank_lines import Line
from mpi_trainer.layout.hosts import launcher_name
from mpi_trainer.local.execute.supervisor_client import JobSnapshot
from mpi_trainer.local.jobs.findings import attempt_findings
from mpi_trainer.local.jobs.jobdir import JobState

LINES = 80
LONGEST = 1000


class LastLines:
    def __init__(self, folder: Path) -> None:
        """`folder` holds the job's log."""
        self._folder = folder
        self._lines: deque[Line] = deque(maxlen=LINES)
        self._began: datetime | None = None
        self._more = False

    def add(self, lines: Iterable[Line]) -> None:
        """What the launcher and its ranks printed."""
        for line in lines:
            if line.role == "launcher":
                self._more = self._more or len(self._lines) == LINES
                self._lines.append(line)

    def history(self, before: JobState, snapshot: JobSnapshot, now: datetime) -> History:
        """Of the job's attempts once `snapshot` is saved; later lines are of the next attempt."""
        if any(p.role == "launcher" for p in snapshot.pods):
            self._began = self._began or now
        if conditions.holds(snapshot.job.status.conditions, conditions.SUCCEEDED):
            return history.without_output(before.attempts)
        ended = history.ended_attempt(before.record, snapshot.record, now)
        if ended is None:
            return before.attempts
        pod = launcher_name(snapshot.job.name)
        text = "\n".join(_marked(line) for line in self._lines)
        words = (LogTail(pod, text, cut=self._more),) if text else ()
        silence = "" if words else "it printed nothing"
        began, self._began, self._more = self._began, None, False
        self._lines.clear()
        new = msgspec.structs.replace(ended, began=began, pod=pod, words=words, silence=silence)
        if ended.reason != history.SUSPENDED:
            new = history.with_findings(new, attempt_findings(self._folder, ended, snapshot))
        return history.with_attempt(before.attempts, new)


def _marked(line: Line) -> str:
    """As mpirun writes it."""
    text = line.text[:LONGEST]
    return text if line.rank is None else f"[1,{line.rank}]<{line.stream}>:{text}"
