"""Large answers on their way to readers who may be slow, or not read at all.

Guarantee: what is held for one caller, and for all, is bounded whatever they do with it: who takes
nothing for a while is cut off, and who lets much pile up gets no more.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from aiohttp import web

from mpi_trainer.server.problems import Refused, problem

LARGE: Final = 64 * 1024
"""bytes; of smaller ones a connection holds as much anyway"""
EACH: Final = 64 * 1024 * 1024
MOST: Final = 256 * 1024 * 1024
LONGEST: Final = 600.0
"""seconds, for who takes a little now and then"""
_SOCKET_BYTES: Final = 64 * 1024
log = logging.getLogger("mpi_trainer.server")


def bound_socket(request: web.Request) -> None:
    """What the system holds for a reader who takes nothing, which it would let grow to MiBs."""
    transport = request.transport
    found = transport.get_extra_info("socket") if transport else None
    if found is not None:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)


class Sending:
    """All answers of one server; `stalled` seconds without room for more end one."""

    def __init__(self, stalled: float) -> None:
        self._stalled = stalled
        self._held: Counter[str] = Counter()

    async def send(
        self, request: web.Request, answer: web.Response, caller: str, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        """The answer itself where it is small. `headers` are those of every answer."""
        body = answer.body
        if not isinstance(body, bytes) or len(body) <= LARGE:
            return answer
        with self._room(caller, len(body)):
            sent = web.StreamResponse(status=answer.status, headers={**headers, **answer.headers})
            sent.content_length = len(body)
            bound_socket(request)
            try:
                async with asyncio.timeout(LONGEST):
                    await sent.prepare(request)
                    await self._pieces(sent, body)
            except TimeoutError:
                log.info("a reader of a large answer was too slow and is cut off")
                if request.transport is not None:
                    request.transport.abort()
            except ConnectionError:
                pass
            return sent

    async def _pieces(self, sent: web.StreamResponse, body: bytes) -> None:
        for start in range(0, len(body), LARGE):
            async with asyncio.timeout(self._stalled):
                await sent.write(body[start : start + LARGE])
        async with asyncio.timeout(self._stalled):
            await sent.write_eof()

    @contextmanager
    def _room(self, caller: str, size: int) -> Iterator[None]:
        if self._held[caller] + size > EACH:
            raise _full(429, "you have not read much of what was answered before")
        if self._held.total() + size > MOST:
            raise _full(503, "the server holds as many large answers as it can")
        self._held[caller] += size
        try:
            yield
        finally:
            self._held[caller] -= size
            if not self._held[caller]:
                del self._held[caller]


def _full(status: int, detail: str) -> Refused:
    hint = "Read the answers to calls that you have made, and repeat this one."
    return Refused(problem(status, "busy", detail, hint), (("Retry-After", "5"),))
