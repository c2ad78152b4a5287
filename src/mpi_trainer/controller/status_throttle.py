"""How long a change of a job's status may wait to be written. Pure.

What a person waits for, such as a condition or an end, is written at once. What is likely to change
again within moments waits, so that one write tells of several changes, and waits longer while the
controller has many other writes to send, which it would only delay. Each kind of job says in its
own `status_throttle` how urgent a change is; from there on the rule is the same.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

NOW: Final = timedelta(0)
WRITES_IN_A_SECOND: Final = 32


class Urgency(msgspec.Struct, frozen=True):
    """A change waits for `pause`, and for `writes` times as long as recent writes take; never for
    more than `longest`."""

    pause: timedelta = NOW
    writes: int = 0
    longest: timedelta = NOW


AT_ONCE: Final = Urgency()


def write_time(recent_writes: float) -> timedelta:
    """How long so many writes take the API server, about."""
    return timedelta(seconds=recent_writes / WRITES_IN_A_SECOND)


def wait(urgency: Urgency, since: datetime, now: datetime, busy: timedelta) -> timedelta:
    """What is left to wait of a change that waits `since` then; NOW: it is due.

    `busy` is the `write_time` of recent writes. A clock that was set back must not add to it.
    """
    longest = min(urgency.pause + urgency.writes * busy, urgency.longest)
    left = longest - (now - since)
    return left if NOW < left <= longest else NOW
