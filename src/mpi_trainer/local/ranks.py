"""What the rank wrappers wrote: who ran where, and how it ended. See `layout/agent/rank.sh`.

A record that is not finished (its name starts with a dot) or names no rank is as if not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mpi_trainer.decide import End, RankSeen

FOLDER = "ranks"


def read(shares: Mapping[str, str], attempt: int) -> tuple[RankSeen, ...]:
    """The ranks of every pod, given each pod's shared directory; in order of rank."""
    found: list[RankSeen] = []
    for pod, share in shares.items():
        folder = Path(share, FOLDER)
        records = (*folder.glob("[!.]*.start"), *folder.glob("[!.]*.end"))
        latest = {path.stem: path for path in records}
        ranks = (_rank(_record(path), pod, attempt) for path in latest.values())
        found += [rank for rank in ranks if rank is not None]
    return tuple(sorted(found, key=lambda r: (r.rank, r.pod, r.pid)))


def clear(share: str) -> None:
    """An empty directory for the ranks of the next attempt."""
    folder = Path(share, FOLDER)
    folder.mkdir(exist_ok=True)
    for record in folder.iterdir():
        record.unlink(missing_ok=True)


def _record(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return {}
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value for key, _, value in pairs}


def _rank(record: Mapping[str, str], pod: str, attempt: int) -> RankSeen | None:
    rank = _number(record.get("rank"))
    if rank is None:
        return None
    end = None
    if "status" in record or "signal" in record:
        end = End(code=_number(record.get("status")), signal=_number(record.get("signal")))
    return RankSeen(
        rank=rank,
        size=_number(record.get("size")) or 0,
        pod=pod,
        attempt=attempt,
        pid=_number(record.get("pid")) or 0,
        end=end,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None
