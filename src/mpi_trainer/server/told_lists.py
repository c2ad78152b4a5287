"""Lists of jobs that a caller's own open stream holds, so that nobody is asked for them again.

An open page asks for its list whenever a job changes; with thousands of jobs and many pages that
would be most of what an API server does. Guarantee: a caller gets what a stream of their own, open
now, has told or is about to tell, under the stream's own checks of rights, and nothing for
`SETTLED` seconds after a change that they made here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from mpi_trainer.sdk.backends.backend import JobSummary

SETTLED: Final = 5.0
"""by then a stream has told of a change"""

Told = Callable[[str], Awaitable[Sequence[JobSummary] | None]]
"""the jobs of a kind, or of all kinds; None where the stream cannot say"""


class ToldLists:
    """Of all callers, in one event loop."""

    def __init__(self) -> None:
        self._open: dict[str, list[tuple[str, Told]]] = {}
        self._from: dict[str, float] = {}

    @contextmanager
    def open(self, caller: str, namespace: str, told: Told) -> Iterator[None]:
        """While a stream of the caller tells the jobs of that namespace, or of all."""
        mine = self._open.setdefault(caller, [])
        mine.append(entry := (namespace, told))
        try:
            yield
        finally:
            mine.remove(entry)
            if not mine:
                del self._open[caller]
                self._from.pop(caller, None)

    def changed(self, caller: str) -> None:
        if caller in self._open:
            self._from[caller] = asyncio.get_running_loop().time() + SETTLED

    async def jobs(self, caller: str, kind: str, namespace: str) -> Sequence[JobSummary] | None:
        if asyncio.get_running_loop().time() < self._from.get(caller, 0.0):
            return None
        for where, told in tuple(self._open.get(caller, ())):
            found = await told(kind) if where == namespace else None
            if found is not None:
                return found
        return None
