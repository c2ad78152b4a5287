"""Why an attempt failed, from its directory, when it ends: its log, its pods and its ranks.

What is kept then is what `explain` and `describe` show, also when the log has been filled by a
later attempt. Of the log the last `LINES` lines are read: the supervisor waits for it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from mpi_trainer.decide.history import Attempt
from mpi_trainer.diagnose import cause, facts
from mpi_trainer.diagnose.finding import Findings
from mpi_trainer.diagnose.log_reader import LogReader
from mpi_trainer.local.execute.supervisor_client import JobSnapshot
from mpi_trainer.local.jobs import logfile

LINES = 50_000
"""of an attempt: about a second"""


def attempt_findings(folder: Path, ended: Attempt, snapshot: JobSnapshot) -> Findings:
    """The most likely cause first. `snapshot` is the job as the attempt has left it."""
    kills = {rank.pod: rank.memory_kills for rank in snapshot.ranks}
    ends = facts.of_ends(snapshot.pods, snapshot.ranks, ended.rank, kills)
    launchers = {pod.name for pod in snapshot.pods if pod.role == "launcher"}
    known = msgspec.structs.replace(
        ends,
        reason=ended.reason,
        message=ended.message,
        blamed_rank=ended.rank,
        blamed_host="" if ended.host in launchers else ended.host,
    )
    reader = LogReader(known.hosts)

    def said(line: logfile.LogEntry) -> bool:
        return line.attempt == ended.attempt and (line.rank is not None or line.pod in launchers)

    log = logfile.LogReader(folder)
    try:
        for _, line in log.tail(LINES, said):
            reader.read_line(line.text, line.rank)
    finally:
        log.close()
    return cause.concluded(reader, known)
