"""What the rank wrappers wrote: who ran where, and how it ended. See `layout/agent/rank.sh`.

A record that is not finished (its name starts with a dot) or names no rank is as if not there.
Where a script starts several worlds one after the other, a rank's last record is the one that
counts: an earlier run that failed and was tried again by the script is the script's own business.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from signal import SIGKILL

from msgspec.structs import replace

from mpi_trainer.api.kinds import pod_status
from mpi_trainer.decide.observed import End, ObservedRank

FOLDER = "ranks"
DONE = "done"
"""below it: records that the agent has reported to the launcher"""


def read(shares: Mapping[str, str], attempt: int) -> tuple[ObservedRank, ...]:
    """The ranks of every pod, given each pod's shared directory; in order of rank."""
    found: dict[int, tuple[float, ObservedRank]] = {}
    for pod, share in shares.items():
        folders = (Path(share, FOLDER), Path(share, FOLDER, DONE))
        begun, ended = (
            [path for folder in folders for path in folder.glob(f"[!.]*.{kind}")]
            for kind in ("start", "end")
        )
        for path in {path.stem: path for path in (*begun, *ended)}.values():
            written, record = _record(path)
            rank = _rank(record, pod, attempt, written)
            if rank is not None and written >= found.get(rank.rank, (0.0,))[0]:
                found[rank.rank] = (written, rank)
    return tuple(rank for _, (_, rank) in sorted(found.items()))


def with_oom_reason(
    ranks: tuple[ObservedRank, ...], out_of_memory: Collection[str]
) -> tuple[ObservedRank, ...]:
    """Ranks that were killed in a pod where the kernel killed for memory, with that reason.

    Only the rank dies so, not its worker: without this it would seem that somebody killed it.
    """
    return tuple(
        replace(rank, end=replace(rank.end, reason=pod_status.OOM_KILLED))
        if rank.end is not None and rank.end.signal == SIGKILL and rank.pod in out_of_memory
        else rank
        for rank in ranks
    )


def clear(share: str) -> None:
    """An empty directory for the ranks of the next attempt."""
    folder = Path(share, FOLDER)
    (folder / DONE).mkdir(parents=True, exist_ok=True)
    for record in (*folder.iterdir(), *(folder / DONE).iterdir()):
        if record.name != DONE:
            record.unlink(missing_ok=True)


def _record(path: Path) -> tuple[float, dict[str, str]]:
    """When it was written, which is finer than the seconds in it, and what it says."""
    try:
        text, written = path.read_text(errors="replace"), path.stat().st_mtime
    except OSError:
        return 0.0, {}
    pairs = (line.partition("=") for line in text.splitlines())
    return written, {key: value for key, _, value in pairs}


def _rank(record: Mapping[str, str], pod: str, attempt: int, written: float) -> ObservedRank | None:
    rank = _number(record.get("rank"))
    if rank is None:
        return None
    end = None
    if "status" in record or "signal" in record:
        end = End(code=_number(record.get("status")), signal=_number(record.get("signal")))
    return ObservedRank(
        rank=rank,
        size=_number(record.get("size")) or 0,
        pod=pod,
        attempt=attempt,
        pid=_number(record.get("pid")) or 0,
        end=end,
        ended=_moment(record, written) if end is not None else None,
    )


def _moment(record: Mapping[str, str], written: float) -> float:
    """When the rank itself ended; its record may be written long after, on a full machine."""
    at = _number(record.get("at"))
    return at / 100 if at else written


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None
