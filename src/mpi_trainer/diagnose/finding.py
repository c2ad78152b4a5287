"""What a diagnosis starts from, and what it says. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.diagnose.evidence import Event, Pod
from mpi_trainer.layout.agent.summary import Summary

replace = msgspec.structs.replace

# Of one finding that is kept in a job: what was named by whoever wrote the launcher's summary.
_NAMED = 16
_LONGEST_NAME = 253

Confidence = Literal["certain", "likely", "possible", "suspicion"]
"""the last of a job that runs: it seems to be stuck"""


class Hit(msgspec.Struct):
    """A line that shows a cause. Its details come with later lines, so it is not frozen.

    `number` counts lines, `quiet` those before it that nothing was found in, and `instead` is the
    other cause that the same words can mean. `by_rank`: a rank wrote the line, not mpirun.
    """

    cause: str
    weight: int
    line: str
    number: int = 0
    quiet: int = 0
    rank: int | None = None
    host: str = ""
    signal: int | None = None
    code: int | None = None
    despite_success: bool = False
    instead: str = ""
    by_rank: bool = False


class Facts(msgspec.Struct, frozen=True):
    """What is known besides the output.

    `exit_code` and `signal` are mpirun's; `ended` is False of a job that was still there when
    somebody gave it up. `seconds` is how long mpirun took to end after the fault, where somebody
    knows when that was. `reason` and `message` are why the job's status says it failed, `summary`
    is the agent's, `hosts` the worker of each rank where the layout of the job is known.
    `blamed_rank` and `blamed_host` are whose fault the status says it was, a launcher's never.
    `awaited` is the agent's line about workers that it waits for, where it is the last of the log.
    """

    exit_code: int | None = None
    signal: int | None = None
    ended: bool = True
    seconds: float | None = None
    reason: str = ""
    message: str = ""
    summary: Summary = Summary()
    pods: tuple[Pod, ...] = ()
    events: tuple[Event, ...] = ()
    hosts: tuple[tuple[int, str], ...] = ()
    blamed_rank: int | None = None
    blamed_host: str = ""
    awaited: str = ""


class Finding(msgspec.Struct, frozen=True):
    """Why a job failed, or one thing that went wrong.

    `line` is the one that shows it, as it was printed, and `followed` what others said because of
    it. `ranks` and `hosts` are those that it names, the first one to fail first. `instead` is the
    other cause that the same words can mean.
    """

    cause: str
    confidence: Confidence
    title: str
    remedy: str
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    line: str = ""
    followed: tuple[str, ...] = ()
    instead: str = ""

    def where(self) -> str:
        """`ranks 1, 2 on worker-1`; empty where neither is known."""
        where = []
        if self.ranks:
            few = ", ".join(str(rank) for rank in self.ranks[:4])
            more = f" and {len(self.ranks) - 4} more" if len(self.ranks) > 4 else ""
            where.append(f"rank{'s' if len(self.ranks) > 1 else ''} {few}{more}")
        if self.hosts:
            more = f" and {len(self.hosts) - 3} more" if len(self.hosts) > 3 else ""
            where.append(f"on {', '.join(self.hosts[:3])}{more}")
        return " ".join(where)

    def text(self) -> str:
        """One paragraph: what, where, the line, the remedy."""
        where = self.where()
        place = f" ({where})" if where else ""
        shown = f": {self.line}" if self.line else ""
        return f"{self.title}{place}{shown}\n{self.remedy}"


Findings = tuple[Finding, ...]


def bounded(found: Findings, most: int = bounds.FINDINGS) -> Findings:
    """As many as take no more than so many bytes as JSON, the first one before all others."""
    kept = tuple(_short(one) for one in found)
    while len(kept) > 1 and _size(kept) > most:
        kept = kept[:-1]
    if _size(kept) > most:
        kept = tuple(replace(one, followed=()) for one in kept)
    if _size(kept) > most:
        kept = tuple(replace(one, hosts=(), line="") for one in kept)
    return kept if _size(kept) <= most else ()


def _short(one: Finding) -> Finding:
    hosts = tuple(host for host in one.hosts[:_NAMED] if _is_name(host))
    return replace(one, ranks=one.ranks[:_NAMED], hosts=hosts)


def _is_name(host: str) -> bool:
    """Whoever runs in the launcher can write anything where a host stands."""
    letters = host.replace("-", "").replace(".", "").replace("_", "")
    return len(host) <= _LONGEST_NAME and letters.isascii() and letters.isalnum()


def _size(found: Findings) -> int:
    return len(msgspec.json.encode(found))
