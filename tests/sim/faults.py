"""What the scripted API server does wrong, as values in a list.

A fault waits until a request fits it, happens `times` times and is spent. The first that fits
wins. Faults of a watch let `after` events through first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Kind = Literal[
    "answer",  # answer with `code` (and Retry-After), process nothing
    "page",  # answer with `code` and a page of HTML, as proxies do
    "hang",  # take the request, process nothing, never answer
    "drop",  # close the connection without processing
    "lose",  # process it, then close the connection without an answer
    "late",  # process and answer `seconds` later
    "silence",  # watch: keep the connection and never say anything again (half-open)
    "end",  # watch: end it in good order
    "cut",  # watch: close the connection in the middle of a line
    "gone",  # watch: an ERROR event with code 410
    "error",  # watch: an ERROR event with `code`
    "duplicate",  # watch: every event twice
    "reorder",  # watch: each pair of events swapped
]
WATCHES = frozenset({"silence", "end", "cut", "gone", "error", "duplicate", "reorder"})


class Fault(msgspec.Struct):
    """One thing that goes wrong. `path` is a part of the request's path."""

    kind: Kind
    method: str = ""
    path: str = ""
    watch: bool | None = None
    times: int = 1
    code: int = 500
    reason: str = "InternalError"
    message: str = "as the script says"
    retry_after: str = ""
    seconds: float = 0.2
    after: int = 0

    def fits(self, method: str, path: str, query: Mapping[str, str]) -> bool:
        """Whether it happens to this request."""
        watches = query.get("watch") in ("true", "1")
        return (
            self.times > 0
            and self.method in ("", method)
            and self.path in path
            and (watches if self.kind in WATCHES else self.watch in (None, watches))
        )


def take(faults: list[Fault], method: str, path: str, query: Mapping[str, str]) -> Fault | None:
    """The fault that happens to a request; it is used up by one."""
    for fault in faults:
        if fault.fits(method, path, query):
            fault.times -= 1
            return fault
    return None
