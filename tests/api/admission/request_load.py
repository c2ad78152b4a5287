"""Many users at once: requests at a steady pace, each of which admission has to answer.

A request changes a label of a stored job, for a try: both configurations are called for it, and
nothing is left behind. Whoever gets no answer, or another one than yes, is kept as a failure.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from tests.api.admin import JOBS, Admin

PER_SECOND = 50
_USERS = 10


class Crowd:
    """Sends from when it is entered until it is left, over connections of its own."""

    def __init__(self, admin: Admin, job: str, per_second: int = PER_SECOND) -> None:
        self._admin = admin
        self._path = f"{JOBS}/mpijobs/{job}?dryRun=All"
        self._every = _USERS / per_second
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._user, args=(n,)) for n in range(_USERS)]
        self._began = 0.0
        self.seconds: list[float] = []
        self.failures: list[str] = []

    @property
    def pace(self) -> float:
        """Answers a second so far."""
        return len(self.seconds) / (time.monotonic() - self._began)

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(60)

    def _user(self, number: int) -> None:
        due = self._began + number * self._every / _USERS
        count = 0
        while not self._over.wait(max(due - time.monotonic(), 0)):
            began, count = time.monotonic(), count + 1
            try:
                self._admin.patch(self._path, {"metadata": {"labels": {"n": f"{number}-{count}"}}})
            except Exception as fault:  # whatever it was, a user was not served
                self.failures.append(f"{time.monotonic() - self._began:.1f} s: {fault!r}")
            self.seconds.append(time.monotonic() - began)
            due = max(due + self._every, time.monotonic() - self._every)
