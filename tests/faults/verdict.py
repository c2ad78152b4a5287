"""What a job's own summary says about its end: the reason, and which rank and host it blames."""

from __future__ import annotations

import re
from typing import Any

import msgspec


class Verdict(msgspec.Struct, frozen=True):
    state: str
    reason: str
    rank: int | None
    host: str


def verdict(ended: dict[str, Any]) -> Verdict:
    """From the machine-readable end of a run; an empty one says that there was none."""
    cause = ended.get("cause")
    state = ended.get("state", "")
    if cause:
        return Verdict(state, cause["reason"], cause.get("rank"), cause.get("host", ""))
    message = ended.get("message", "")
    rank = re.search(r"\b[Rr]ank (\d+) on (\S+?)\b(?![\w-])", message)
    host = re.search(r"\b\w+-(?:worker-\d+|launcher)\b", message)
    return Verdict(
        state,
        ended.get("reason", ""),
        int(rank[1]) if rank else None,
        rank[2] if rank else host[0] if host else "",
    )
