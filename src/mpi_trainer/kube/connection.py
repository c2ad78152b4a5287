"""Connections to the API server, and the words for one that fails.

A peer that vanished without a word is found by TCP's keep-alive within a minute, even in a
stream that may rightly be silent for hours.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from functools import partial
from typing import Any, Final

import aiohttp
from aiohttp.connector import Connection

from mpi_trainer.kube.errors import Unreachable
from mpi_trainer.kube.requests import Request

_IDLE: Final = 30
_PROBES: Final = {"TCP_KEEPIDLE": 20, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


def connector() -> aiohttp.TCPConnector:
    """A pool without a limit of its own: watches stay, and calls are counted by the client."""
    return _Pool(limit=0, keepalive_timeout=_IDLE, socket_factory=_socket)


class _Pool(aiohttp.TCPConnector):
    """Drops a connection that cannot be used again, as that of a request that was cancelled.

    A farewell in TLS would outlive the event loop, and the socket with it.
    """

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the library's own name
    ) -> Connection:
        made = await super().connect(req, traces, timeout)
        made.add_callback(partial(_given_back, made.transport))
        return made


def _given_back(transport: asyncio.Transport | None) -> None:
    """Told just before the pool keeps the connection or closes it."""
    if transport is not None:
        asyncio.get_running_loop().call_soon(_drop_closing, transport)


def _drop_closing(transport: asyncio.Transport) -> None:
    if transport.is_closing():
        transport.abort()


async def once(
    request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Sends a request once. The library would repeat PUT and DELETE by itself where a connection
    that was used before breaks, and a name may mean another object by then."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise aiohttp.ClientConnectionError(str(error)) from error


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PROBES.items():
        option: Any = getattr(socket, name, None)
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


def abandon(answer: aiohttp.ClientResponse) -> None:
    """Break off an answer that was not read to its end. A farewell in TLS could wait for long."""
    connection = answer.connection
    if connection and connection.transport:
        connection.transport.abort()


def unreachable(request: Request, error: BaseException, server: str) -> Unreachable:
    return Unreachable(request, *_words(error, server))


def _words(error: BaseException, server: str) -> tuple[str, str]:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            inner = error.certificate_error
            why = getattr(inner, "verify_message", "") or inner
            words = f"{server} shows a certificate that we do not trust: {why}"
            pair = ("tls", f"{words}; check certificate-authority")
        case aiohttp.ClientSSLError() | ssl.SSLError():
            pair = ("tls", f"no TLS with {server}: {error}")
        case aiohttp.ConnectionTimeoutError():
            pair = ("connect", f"no connection to {server} in time; is it running?")
        case aiohttp.ClientHttpProxyError():
            pair = ("connect", f"the proxy refuses {server}: {error.status} {error.message}")
        case aiohttp.ClientProxyConnectionError():
            pair = ("connect", f"no connection to the proxy for {server}: {_system(error)}")
        case aiohttp.ClientConnectorError():
            pair = ("connect", f"no connection to {server}: {_system(error)}; is it running?")
        case TimeoutError():
            pair = ("time-out", f"{server} did not answer in time")
        case _:
            why = str(error) or type(error).__name__
            pair = ("broken", f"the connection to {server} broke: {why}")
    return pair


def _system(error: aiohttp.ClientConnectorError) -> str:
    number = error.os_error.errno
    # Negative numbers are the name service's, whose words are in the error already.
    return os.strerror(number) if number and number > 0 else str(error.os_error)
