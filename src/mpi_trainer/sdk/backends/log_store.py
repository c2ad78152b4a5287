"""A place that keeps log lines after their pods are gone, such as Loki or OpenShift Logging.

A package offers one as an entry point of the group `mpi_trainer.log_stores`: a callable without
arguments that gives a `LogStore`. MPI_TRAINER_LOG_STORE names the one to use. It is asked where no
pod is left that could be read; without one there are the last lines that the job keeps.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Final, Protocol

from mpi_trainer.sdk.backends.backend import JobView, LogLine, LogQuery
from mpi_trainer.sdk.backends.log_filter import LineFilter
from mpi_trainer.sdk.errors import JobError

CHOICE: Final = "MPI_TRAINER_LOG_STORE"
GROUP: Final = "mpi_trainer.log_stores"


class LogStore(Protocol):
    def lines(self, job: JobView, query: LogQuery) -> AsyncGenerator[LogLine, None]:
        """The job's lines that the query asks for, oldest first; `follow` does not matter. Lines
        that the query does not take are left out by whoever calls this."""


async def stored_lines(
    store: LogStore, job: JobView, query: LogQuery
) -> AsyncGenerator[LogLine, None]:
    """What the store has, less what the query does not take."""
    wanted = LineFilter(query)
    last: deque[LogLine] = deque(maxlen=query.tail)
    async with aclosing(store.lines(job, query)) as found:
        async for line in found:
            if not wanted.takes(line.pod, line.rank, line.time.timestamp(), line.text):
                continue
            if query.tail is None:
                yield line
            else:
                last.append(line)
    for line in last:
        yield line


def configured_log_store(environ: Mapping[str, str] = os.environ) -> LogStore | None:
    """The one that the environment names; None where it names none."""
    name = environ.get(CHOICE, "")
    if not name:
        return None
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=name):
        made: LogStore = entry.load()()
        return made
    known = ", ".join(sorted(entry.name for entry in entry_points(group=GROUP))) or "none"
    raise JobError(
        f"{CHOICE} is {name}, and no installed package has such a log store",
        f"Install its package; installed are: {known}.",
    )
