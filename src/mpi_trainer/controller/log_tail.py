"""What an attempt printed last, read when it ends and before its pods are stopped (W-7); and what
that shows of why it failed.

It is stored in the job with the record of the attempt, in one write: of a launcher the last lines
of its log, and before them the last ones of ranks that failed, where others have printed much
since; of a worker that failed by itself its own last lines.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds.annotations import LOG_TAIL, OFF
from mpi_trainer.controller import findings, redact
from mpi_trainer.controller.objects import Pod
from mpi_trainer.controller.pod_logs import PodLogs, UnreadableLog
from mpi_trainer.decide.history import (
    SUSPENDED,
    SWITCHED_OFF,
    Attempt,
    LogTail,
    with_findings,
)
from mpi_trainer.diagnose.finding import Facts
from mpi_trainer.layout.agent.summary import Summary
from mpi_trainer.layout.mpi import RANK_MARK

replace = msgspec.structs.replace

# The agent's own lines about ranks, for machines; they would leave no room for the program's.
AGENT_LINE = "mpi-agent| "
AGENT_WAITS = "mpi-agent: waiting "
LINES = 80
OF_RANK = 12
"""lines of a rank that failed, where they are not among the last ones"""
RANKS = 3
LONGEST_LINE = 1000
CHARACTERS = 12 * 1024
_MARK = re.compile(RANK_MARK)

Environment = list[tuple[str, str]]


class LogSource(msgspec.Struct, frozen=True):
    """A pod whose log is read; `main` is its container that runs the job, "" the first. Lines of
    `ranks` are kept first. `serves`: it is a worker's sshd, whose lines show no cause."""

    pod: Pod
    main: str = ""
    ranks: tuple[int, ...] = ()
    serves: bool = False


class ReadLog(msgspec.Struct, frozen=True):
    """What is kept of a log, and all lines that were read of it."""

    tail: LogTail
    lines: list[str]
    serves: bool


def allowed(annotations: Mapping[str, str], on: bool) -> bool:
    """Whether anything that a job's programs wrote may be shown: `on` is the administrator's
    switch, and a job can switch its own off."""
    return on and annotations.get(LOG_TAIL) != OFF


def failed_ranks(summary: Summary) -> tuple[int, ...]:
    """Those that ended the others, the likeliest cause first."""
    first = [] if summary.cause is None or summary.cause.rank is None else [summary.cause.rank]
    bad = [*first, *(r.rank for r in summary.raised), *(b.rank for b in summary.bad)]
    return tuple(dict.fromkeys(bad))[:RANKS]


async def with_log_tails(
    logs: PodLogs,
    attempt: Attempt,
    sources: Iterable[LogSource],
    environment: Environment,
    facts: Facts,
) -> Attempt:
    """The attempt with the ends of these logs, or why none could be read, and with what they and
    the facts show of why it failed."""
    read = await asyncio.gather(*(_read(logs, one, environment) for one in sources))
    found = [one for one in read if isinstance(one, ReadLog)]
    lines = [line for one in found if not one.serves for line in one.lines]
    shown = await asyncio.to_thread(findings.found_in, lines, facts, environment)
    attempt = attempt if attempt.reason == SUSPENDED else with_findings(attempt, shown)
    if not read:
        return replace(attempt, silence="the launcher's pod was gone before its log could be read")
    tails = tuple(one.tail for one in found if one.tail.text)
    silence = next((one for one in read if isinstance(one, str)), "it printed nothing")
    return replace(attempt, words=tails, silence="" if tails else silence)


def without_log_tails(attempt: Attempt, facts: Facts) -> Attempt:
    """Where nothing that a program wrote may be kept."""
    shown = findings.without_words(findings.found_in((), facts, ()))
    attempt = attempt if attempt.reason == SUSPENDED else with_findings(attempt, shown)
    return replace(attempt, silence=SWITCHED_OFF)


async def _read(logs: PodLogs, source: LogSource, environment: Environment) -> ReadLog | str:
    try:
        text = await logs.end(source.pod, source.main)
    except UnreadableLog as error:
        return str(error)
    # Some milliseconds for a long log, and many for a hostile one.
    return await asyncio.to_thread(read_log, source, text, environment)


def read_log(source: LogSource, log: str, environment: Environment) -> ReadLog:
    """The end of a log as lines that may be shown, and what is kept of them. Pure."""
    plain = redact.printable(log, environment, bounds.LOG_TAIL)
    lines = [line.rstrip()[:LONGEST_LINE] for line in plain.split("\n")]
    lines = [line for line in lines if line and not line.startswith(AGENT_LINE)]
    kept = _with_ranks(lines, source.ranks)
    while kept and sum(map(len, kept)) + len(kept) > CHARACTERS:
        kept = kept[1 + len(kept) // 16 :]
    cut = len(kept) < len(lines) or len(log) >= bounds.LOG_TAIL
    tail = LogTail(source.pod.metadata.name, "\n".join(kept), cut=cut)
    return ReadLog(tail, lines, source.serves)


def _with_ranks(lines: list[str], ranks: Iterable[int]) -> list[str]:
    last, before = lines[-LINES:], lines[:-LINES]
    chosen: set[int] = set()
    for rank in ranks:
        if not any(_rank(line) == rank for line in last):
            own = [n for n, line in enumerate(before) if _rank(line) == rank]
            chosen.update(own[-OF_RANK:])
    return [*(before[n] for n in sorted(chosen)), *last]


def _rank(line: str) -> int | None:
    mark = _MARK.match(line)
    return int(mark["rank"]) if mark is not None and len(mark["rank"]) < 8 else None


def started_at(pod: Pod | None, main: str = "") -> datetime | None:
    """When its container began, else when it was made."""
    if pod is None:
        return None
    for one in pod.status.container_statuses:
        state = one.state.running or one.state.terminated
        if state is not None and main in ("", one.name) and state.started_at is not None:
            return state.started_at
    return pod.metadata.creation_timestamp
