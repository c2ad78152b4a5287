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
    message: str = ""


def verdict(ended: dict[str, Any]) -> Verdict:
    """From the machine-readable end of a run; an empty one says that there was none."""
    cause = ended.get("cause")
    state = ended.get("state", "")
    if cause:
        rank, host = cause.get("rank"), cause.get("host", "")
        return Verdict(state, cause["reason"], rank, host, ended["message"])
    message = ended.get("message", "")
    blamed = re.search(r"\b[Rr]ank (\d+) on (\S+?)\b(?![\w-])", message)
    named = re.search(r"\b\w+-(?:worker-\d+|launcher)\b", message)
    return Verdict(
        state,
        ended.get("reason", ""),
        int(blamed[1]) if blamed else None,
        blamed[2] if blamed else named[0] if named else "",
        message,
    )
