"""Connections to a server that every pod may reach: limited in number and rate, and fairly.

A TLS connection costs a quarter of a megabyte before a byte of it has come (asyncio's buffers), and
its handshake a millisecond of the event loop that the whole process shares. Guarantee: no more than
`most` connections are open, handshakes among them, and new ones are let in at a bounded rate. Where
there is no room, the address that has the most connections loses its oldest one; if the new one
comes from that address, it is refused. Danger: behind a gateway that hides addresses all are one.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import msgspec
from aiohttp import web

log = logging.getLogger(__name__)

MOST: Final = 128
PAUSE: Final = 0.01
"""seconds between two that are let in"""
HANDSHAKE_SECONDS: Final = 5.0
_NO_FILES_SECONDS: Final = 1.0


_Peer = tuple[str, int]
_End = Callable[[], object]


class _Open(msgspec.Struct, frozen=True):
    """A connection, and how to end it at once."""

    address: str
    end: _End


class ConnectionLimit:
    """Of the server of one runner, which is set up."""

    def __init__(
        self, runner: web.AppRunner, context: ssl.SSLContext, most: int = MOST, pause: float = PAUSE
    ) -> None:
        assert runner.server is not None
        self._server = runner.server
        self._context = context
        self._most = most
        self._pause = pause
        self._handshakes: dict[asyncio.Task[None], _Peer] = {}

    @asynccontextmanager
    async def open(self, host: str | None, port: int) -> AsyncIterator[int]:
        """Lets in while entered; gives the port. `host` None means every address."""
        listening = _listening(host, port)
        accepting = asyncio.create_task(self._accept(listening))
        try:
            yield int(listening.getsockname()[1])
        finally:
            tasks = [accepting, *self._handshakes]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            listening.close()

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                sock, address = await asyncio.get_running_loop().sock_accept(listening)
            except OSError as error:
                log.warning("a connection could not be accepted: %s", error)
                await asyncio.sleep(_NO_FILES_SECONDS)
                continue
            if self._makes_room(address[0]):
                task = asyncio.create_task(self._handshake(sock))
                self._handshakes[task] = address[:2]
                task.add_done_callback(self._handshakes.pop)
            else:
                sock.close()
            await asyncio.sleep(self._pause)

    async def _handshake(self, sock: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._server,
                sock,
                ssl=self._context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=HANDSHAKE_SECONDS,
            )
        except OSError as error:
            log.debug("no TLS: %s", error)

    def _makes_room(self, address: str) -> bool:
        """Whether one of this address may come in; another may have had to go for it."""
        opened = self._open()
        if len(opened) < self._most:
            return True
        (busiest, count), *_ = Counter(one.address for one in opened).most_common(1)
        if sum(one.address == address for one in opened) >= count:
            return False
        next(one for one in opened if one.address == busiest).end()
        return True

    def _open(self) -> list[_Open]:
        """The oldest first."""
        served: dict[_Peer, _End] = {
            (one.get_extra_info("peername") or ("", 0))[:2]: one.abort
            for handler in self._server.connections
            if isinstance(one := handler.transport, asyncio.Transport)
        }
        # One whose handshake has just ended is among both for a moment.
        coming = {
            peer: task.cancel for task, peer in self._handshakes.items() if peer not in served
        }
        return [_Open(peer[0], end) for peer, end in (*served.items(), *coming.items())]


def _listening(host: str | None, port: int) -> socket.socket:
    made = _on_every_address(port) if host is None else socket.create_server((host, port))
    made.setblocking(False)
    return made


def _on_every_address(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
    return socket.create_server(("", port))
