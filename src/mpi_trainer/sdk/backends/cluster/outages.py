"""An API server that is away for a while: said once, waited for, said again when it is back.

Only a server that has answered before is waited for; an address that never answered is wrong, and
that is told at once. Guarantee: after `LONGEST` seconds whoever waits gets the error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from mpi_trainer.kube.errors import KubeError, ServerFault, TooManyRequests, Unreachable

T = TypeVar("T")
Say = Callable[[str], None]

LONGEST: Final = 300.0
_SLOWEST: Final = 5.0


class Outages:
    """The state of one connection."""

    def __init__(self, server: str, say: Say) -> None:
        self._server = server
        self._say = say
        self._known = False
        self._since: float | None = None
        self._announced = False

    def note_answer(self) -> None:
        """The server has answered."""
        self._known = True
        self._since = None
        if self._announced:
            self._announced = False
            self._say(f"{self._server} answers again")

    async def wait_for_server(self, error: KubeError, tried: int) -> None:
        """Waits a little before the next try; raises where waiting makes no sense."""
        if not self._known or not _passing(error):
            raise error
        now = asyncio.get_running_loop().time()
        self._since = now if self._since is None else self._since
        if now - self._since > LONGEST:
            raise error
        if not self._announced and tried:
            self._announced = True
            self._say(f"{self._server} does not answer; waiting for it ({_why(error)})")
        await asyncio.sleep(min(_SLOWEST, 0.25 * 2.0**tried))

    async def retried(self, work: Callable[[], Awaitable[T]], *, again: bool) -> T:
        """The answer. `again`: it may be asked twice; else only where nothing was sent."""
        tried = 0
        while True:
            try:
                answer = await work()
            except KubeError as error:
                if not again and not (isinstance(error, Unreachable) and not error.sent):
                    raise
                await self.wait_for_server(error, tried)
                tried += 1
            else:
                self.note_answer()
                return answer


def _passing(error: KubeError) -> bool:
    if isinstance(error, Unreachable):
        return error.what != "tls"
    return isinstance(error, ServerFault | TooManyRequests)


def _why(error: KubeError) -> str:
    return str(error).partition(": ")[2] or str(error)
