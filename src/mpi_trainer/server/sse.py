"""Events on the wire: server-sent events, as browsers read them.

Memory for one reader is bounded, however much there is to say and however slow they are: no more is
made than they have taken, and who takes nothing for too long is cut off. A reader that went away is
noticed within seconds. The end of the server ends all streams, and clients come back by themselves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, suppress
from typing import Any, Final

import msgspec
from aiohttp import web

from mpi_trainer.server import problems
from mpi_trainer.server.live.hub import Hub
from mpi_trainer.server.live.values import Cut, Sent, Shared
from mpi_trainer.server.openapi import EVENT_STREAM
from mpi_trainer.server.sending import bound_socket

RETRY: Final = b"retry: 2000\n\n"
PIECE: Final = 16 * 1024
_GLANCE: Final = 3.0
_FAREWELL: Final = 5.0
_ALIVE: Final = b": alive\n\n"
log = logging.getLogger("mpi_trainer.server")


class TooSlow(Exception):
    """The reader has no room for more; `whole`: what it was sent ends with the end of an event."""

    def __init__(self, *, whole: bool) -> None:
        super().__init__("a reader was too slow")
        self.whole = whole


def pieces(sent: Sent) -> Iterator[bytes]:
    """The bytes of an event, none of them large."""
    head = f"id: {sent.id}\n" if sent.id else ""
    gathered = bytearray(f"{head}event: {sent.event}\ndata: ".encode())
    parts = sent.data.parts if isinstance(sent.data, Shared) else (msgspec.json.encode(sent.data),)
    for part in (*parts, b"\n\n"):
        for start in range(0, len(part), PIECE):
            gathered += part[start : start + PIECE]
            if len(gathered) >= PIECE:
                yield bytes(gathered)
                gathered.clear()
    if gathered:
        yield bytes(gathered)


class Stream:
    """One answer that goes on. `headers` are those of every answer."""

    def __init__(self, request: web.Request, hub: Hub, headers: Mapping[str, str]) -> None:
        self._request = request
        self._hub = hub
        self._response = web.StreamResponse(
            headers={**headers, "Content-Type": EVENT_STREAM, "X-Accel-Buffering": "no"}
        )
        self._position = ""

    async def send(self, first: Sent, events: AsyncGenerator[Sent, None]) -> web.StreamResponse:
        """`events` is at its first one, which the caller has taken."""
        await self._response.prepare(self._request)
        bound_socket(self._request)
        try:
            await self._write(RETRY, whole=True)
            await self._event(first)
            # Closed before `events` is: it waits for the next one of them.
            async with aclosing(self._while_wanted(events)) as wanted:
                async for sent in wanted:
                    await self._event(sent)
        except TooSlow as error:
            await self._cut(error)
        except ConnectionError:
            pass
        return self._response

    async def _while_wanted(self, events: AsyncGenerator[Sent, None]) -> AsyncGenerator[Sent, None]:
        """The events, and then the problem that ended them; none when nobody reads any more."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._hub.settings.oldest
        stop = asyncio.ensure_future(self._hub.stopping.wait())
        coming: asyncio.Future[Sent] = asyncio.ensure_future(anext(events))
        try:
            beat = loop.time() + self._hub.settings.heartbeat
            while not stop.done() and loop.time() < end and self._connected:
                pause = max(0.0, min(_GLANCE, beat - loop.time()))
                either: set[asyncio.Future[Any]] = {coming, stop}
                await asyncio.wait(either, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
                if coming.done():
                    yield coming.result()
                    coming = asyncio.ensure_future(anext(events))
                elif loop.time() >= beat:
                    await self._write(_ALIVE, whole=True)
                else:
                    continue
                beat = loop.time() + self._hub.settings.heartbeat
        except StopAsyncIteration:
            return
        except (TooSlow, ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:
            yield _failed(error)
        finally:
            stop.cancel()
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    @property
    def _connected(self) -> bool:
        transport = self._request.transport
        return transport is not None and not transport.is_closing()

    async def _event(self, sent: Sent) -> None:
        coming = pieces(sent)
        piece = next(coming)
        while piece:
            following = next(coming, b"")
            if not following:
                # What is given to the transport is ahead of a `cut`, if one follows.
                self._position = sent.id or self._position
            await self._write(piece, whole=not following)
            piece = following

    async def _write(self, data: bytes, *, whole: bool) -> None:
        """`whole`: what was written ends with it."""
        try:
            async with asyncio.timeout(self._hub.settings.stalled):
                await self._response.write(data)
        except TimeoutError:
            raise TooSlow(whole=whole) from None

    async def _cut(self, error: TooSlow) -> None:
        """Says so where an event can still be told from what came before; then closes."""
        transport = self._request.transport
        if transport is None:
            return
        log.info("a reader of a live stream was too slow and is cut off")
        if error.whole:
            last = b"".join(pieces(Sent("cut", Cut(self._position))))
            with suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(_FAREWELL):
                    await self._response.write(last)
                    await self._response.write_eof()
                    while transport.get_write_buffer_size():  # noqa: ASYNC110 - no event for it
                        await asyncio.sleep(0.1)
        transport.abort()


def _failed(error: Exception) -> Sent:
    found = problems.explained(error)
    if found is None:
        log.error("a fault in a live stream", exc_info=error)
        found = problems.fault()
    return Sent("error", found)
