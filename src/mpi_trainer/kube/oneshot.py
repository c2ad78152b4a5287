"""One request at a time over the standard library's HTTP client, without an event loop.

The same `Request` values, errors, credentials and rules for repeating as `kube.client`, for short
commands: importing aiohttp takes longer than all else that they do. One connection is kept from
call to call. Danger: it blocks, and it neither streams nor watches; use it in one thread.
"""

from __future__ import annotations

import http.client
import random
import select
import socket
import ssl
import time
import zlib
from collections.abc import Mapping
from typing import Any, Final, Self, TypeVar, overload
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from mpi_trainer import __version__
from mpi_trainer.api.yaml import typed
from mpi_trainer.kube.config import Config
from mpi_trainer.kube.credentials import Credential, basic
from mpi_trainer.kube.errors import Garbled, KubeError, Unauthorized, Unreachable, from_answer
from mpi_trainer.kube.requests import Fetcher, Request
from mpi_trainer.kube.retries import wait_before
from mpi_trainer.kube.trust import Contexts

T = TypeVar("T")
_CONNECT: Final = 10.0
_GZIP: Final = 31
_PORTS: Final = {"https": 443, "http": 80}
_FAILURES: Final = (OSError, http.client.HTTPException)


class _Connection(http.client.HTTPConnection):
    """To the API server, perhaps through a proxy; `tls` and `name` are those of the server."""

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext | None, name: str) -> None:
        super().__init__(*address, timeout=_CONNECT)
        self._tls = tls
        self._name = name

    def connect(self) -> None:
        super().connect()
        if self._tls is not None:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name)


class OneShot:
    """One API server. Close it, or use it in `with`."""

    def __init__(self, config: Config, *, user_agent: str = f"mpi-trainer/{__version__}") -> None:
        self.config = config
        self._contexts = Contexts(config.trust)
        self._headers = {
            "User-Agent": user_agent,
            "Accept": "application/json",
            "Accept-Encoding": "gzip" if config.compress else "identity",
        }
        self._connection: _Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @overload
    def call(self, request: Request, kind: None) -> None: ...
    @overload
    def call(self, request: Request, kind: type[T]) -> T: ...
    @overload
    def call(self, request: Request, kind: Any = Any) -> Any: ...

    def call(self, request: Request, kind: Any = Any) -> Any:
        """Send it and decode the answer to `kind`; None does not look at the answer."""
        body = self.fetch(request)
        return None if kind is None else self.decode(request, body, kind)

    def fetch(self, request: Request, headers: Mapping[str, str] | None = None) -> bytes:
        """Send it, again where that is safe, and give the answer's body."""
        tried, renewed = 0, False
        while True:
            tried += 1
            try:
                return self._exchange(request, headers or {})
            except Unauthorized:
                if renewed or not self.config.credentials.refused():
                    raise
                renewed = True
                self.close()
            except KubeError as error:
                wait = wait_before(request, error, tried, random.random())
                if wait is None:
                    raise
                time.sleep(wait)

    def decode(self, request: Request, body: bytes, kind: Any) -> Any:
        """An answer as a value."""
        try:
            return typed.decode(body, kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Garbled(request, str(error)) from error

    def _exchange(self, request: Request, headers: Mapping[str, str]) -> bytes:
        credential = self.config.credentials.ready() or self.config.credentials.fetch()
        if self._connection is not None and _dropped(self._connection.sock):
            self.close()
        try:
            answer, body = self._answer(request, credential, headers)
        except _FAILURES as error:
            self.close()
            raise unreachable(request, error, self.config.server) from error
        if answer.will_close:
            self.close()
        if answer.headers.get("Content-Encoding") == "gzip":
            try:
                body = zlib.decompress(body, wbits=_GZIP)
            except zlib.error as error:
                raise Garbled(request, str(error)) from error
        if 200 <= answer.status < 300:
            return body
        raise from_answer(request, answer.status, body, answer.headers.get("Retry-After", ""))

    def _answer(
        self, request: Request, credential: Credential, extra: Mapping[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        server = urlsplit(self.config.server)
        connection = self._connection = self._connection or self._opened(server, credential)
        connection.sock.settimeout(request.timeout or None)
        own = request.headers(credential.authorization)
        headers = {"Host": server.netloc, **self._headers, **extra, **own}
        if request.body or request.writes:
            headers["Content-Length"] = str(len(request.body))
        target = server.path.rstrip("/") + request.target
        connection.putrequest(request.method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in (*headers.items(), *self.config.impersonation):
            if "\r" in value or "\n" in value:
                # The library would refuse it too, and show a token in its message.
                raise ValueError(f"the header {name} holds the end of a line")
            connection.putheader(name, value)
        connection.endheaders(request.body or None)
        answer = connection.getresponse()
        return answer, answer.read()

    def _opened(self, server: SplitResult, credential: Credential) -> _Connection:
        host, port = server.hostname or "", server.port or _PORTS[server.scheme]
        tls = self._contexts.current(credential) if server.scheme == "https" else None
        name = self.config.trust.server_name or host
        if not self.config.proxy:
            made = _Connection((host, port), tls, name)
            made.connect()
            return made
        made = _through(self.config.proxy, (host, port), tls, name)
        try:
            made.connect()
        except OSError as error:
            if error.errno is None and type(error) is OSError:  # the answer to CONNECT
                raise ConnectionRefusedError(0, f"the proxy refuses it: {error}") from error
            raise
        return made


class BlockingFetcher(Fetcher):
    """`OneShot` for code that awaits its answers, in programs that have nothing else to do.

    Danger: every call blocks the event loop until its answer is there.
    """

    def __init__(self, config: Config) -> None:
        self._server = OneShot(config)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        self._server.close()

    async def call(self, request: Request, kind: Any = Any) -> Any:
        return self._server.call(request, kind)

    async def fetch(self, request: Request) -> bytes:
        return self._server.fetch(request)

    def decode(self, request: Request, body: bytes, kind: Any) -> Any:
        return self._server.decode(request, body, kind)


def _through(
    proxy: str, server: tuple[str, int], tls: ssl.SSLContext | None, name: str
) -> _Connection:
    """A connection to the server by way of an HTTP proxy, not yet opened."""
    parts = urlsplit(proxy)
    if parts.scheme != "http":
        raise ConnectionRefusedError(0, f"a proxy with {parts.scheme} is not supported here")
    made = _Connection((parts.hostname or "", parts.port or _PORTS[parts.scheme]), tls, name)
    headers = {}
    if parts.username:
        login = basic(unquote(parts.username), unquote(parts.password or ""))
        headers["Proxy-Authorization"] = login
    made.set_tunnel(*server, headers=headers)
    return made


def _dropped(idle: socket.socket) -> bool:
    """Whether the server has ended a connection on which nothing is on its way."""
    watched = select.poll()
    watched.register(idle, select.POLLIN)
    return bool(watched.poll(0))


def unreachable(request: Request, error: BaseException, server: str) -> Unreachable:
    return Unreachable(request, *_words(error, server))


def _words(error: BaseException, server: str) -> tuple[str, str]:
    match error:
        case ssl.SSLCertVerificationError():
            words = f"{server} shows a certificate that we do not trust: {error.verify_message}"
            pair = ("tls", f"{words}; check certificate-authority")
        case ssl.SSLError():
            pair = ("tls", f"no TLS with {server}: {error}")
        case ConnectionRefusedError() | socket.gaierror():
            pair = ("connect", f"no connection to {server}: {error.strerror}; is it running?")
        case TimeoutError():
            pair = ("time-out", f"{server} did not answer in time")
        case _:
            why = str(error) or type(error).__name__
            pair = ("broken", f"the connection to {server} broke: {why}")
    return pair
