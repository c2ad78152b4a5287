"""How long a job waits for what an earlier job of its name has left.

Most often that is gone within a second. What somebody keeps from going is asked for less and less
often, and after a few minutes the name counts as taken. Only time between two tries counts: a
clock that is set, or a job that rests meanwhile, does not use the minutes up.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Final

import msgspec

from mpi_trainer.runtime.backoff import Chance, Curve

_CURVE: Final = Curve(first=0.5, cap=30.0, spread=0.1, both_ways=True)
_PATIENCE: Final = timedelta(minutes=5)
_LONGEST: Final = timedelta(seconds=40)
"""that a wait for the next try takes, with some time for the try itself"""


class NameWait(msgspec.Struct):
    waited: timedelta = timedelta()
    tries: int = 0
    last: datetime | None = None

    def again(self, now: datetime, chance: Chance = random.random) -> float | None:
        """The seconds until the next try; None: it has waited long enough."""
        passed = now - (self.last or now)
        self.waited += max(min(passed, _LONGEST), timedelta())
        self.last = now
        if self.waited >= _PATIENCE:
            return None
        self.tries += 1
        return _CURVE.delay(self.tries - 1, chance)


def told(error: Exception) -> str:
    """Why the name counts as taken, and what to do."""
    return (
        f"{error}, though it has had {_PATIENCE // timedelta(minutes=1)} minutes to go; see what "
        "keeps it (`kubectl get -o yaml`, metadata.finalizers), or give the job another name"
    )
