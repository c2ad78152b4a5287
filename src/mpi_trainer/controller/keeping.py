"""What a try to keep a job's children comes to, for the rest of the pass.

What is in their way is in the way of new pods and of nothing else: what is known of the job is
stored, its end above all, and what is to stop is stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from datetime import datetime
from typing import Final

import msgspec

from mpi_trainer.controller.children import NameTaken, NameWait, Predecessor, name_taken_text
from mpi_trainer.controller.events import shortened
from mpi_trainer.controller.job_memory import Rejection
from mpi_trainer.decide import reasons
from mpi_trainer.kube.errors import Forbidden, Invalid, KubeError, NotFound
from mpi_trainer.runtime.workers import Result

log = logging.getLogger(__name__)

TERMINATING: Final = "NamespaceTerminating"
_GOING_AGAIN: Final = 10.0
_LATER: Final = 30.0


class Keeping(msgspec.Struct):
    """What one try tells the next; `refusal` is what the API server said."""

    name: NameWait = msgspec.field(default_factory=NameWait)
    refusal: str = ""


class Held(msgspec.Struct, frozen=True):
    """Why there are no new pods: for good, until a time in seconds, or for an error that is raised
    once the rest of the pass is done."""

    rejection: Rejection | None = None
    after: float = 0.0
    error: KubeError | None = None

    def result(self) -> Result:
        if self.error is not None:
            raise self.error
        return Result(self.after)


def awaited(error: Predecessor, name: NameWait, now: datetime) -> Held:
    """Until what has the name is gone; for good, where that takes too long."""
    after = name.again(now)
    if after is None:
        return Held(Rejection(reasons.NAME_TAKEN, name_taken_text(error)))
    log.info("waiting: %s", error)
    return Held(after=after)


async def tried(
    act: Awaitable[None], known: Keeping, now: datetime, *, starts: bool
) -> Held | None:
    """None: all is as it should be. `starts`: no pods run yet, so that a name that stays taken is
    a reason to give up."""
    try:
        await act
    except NameTaken as error:
        return Held(Rejection(reasons.NAME_TAKEN, str(error)))
    except Predecessor as error:
        held = awaited(error, known.name, now)
        return held if starts or held.rejection is None else Held(after=_LATER)
    except KubeError as error:
        if isinstance(error, Forbidden) and error.has_cause(TERMINATING):
            return Held(after=_GOING_AGAIN)
        if isinstance(error, Forbidden | Invalid | NotFound):
            known.refusal = shortened(str(error))
        return Held(error=error)
    known.name, known.refusal = NameWait(), ""
    return None
