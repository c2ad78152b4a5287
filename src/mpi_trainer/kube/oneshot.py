"""One request at a time, without an event loop: what a short command needs of an API server.

The same `Request` values, errors, credentials and rules for repeating as `kube.client`; importing
this costs a tenth of it, which is most of what a command line takes. One connection is kept from
call to call. Danger: it blocks, and it neither streams nor watches; use it in one thread.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast, overload
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from mpi_trainer import __version__
from mpi_trainer.api.yaml import typed
from mpi_trainer.kube.config import Config
from mpi_trainer.kube.credentials import Credential, basic
from mpi_trainer.kube.errors import Garbled, KubeError, Unauthorized, Unreachable, from_answer
from mpi_trainer.kube.plainhttp import Answer, Broken, answered, asking, tunnelled
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.retries import wait_before
from mpi_trainer.kube.trust import Contexts

T = TypeVar("T")
_CONNECT: Final = 10.0
_PORTS: Final = {"https": 443, "http": 80}


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
        self._connection: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
        if kind is None:
            return None
        try:
            return typed.decode(body, kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Garbled(request, str(error)) from error

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
                import random

                wait = wait_before(request, error, tried, random.random())
                if wait is None:
                    raise
                time.sleep(wait)

    def _exchange(self, request: Request, headers: Mapping[str, str]) -> bytes:
        credential = self.config.credentials.ready() or self.config.credentials.fetch()
        reused = self._connection is not None
        try:
            answer = self._answer(request, credential, headers)
        except OSError as error:
            self.close()
            if reused and isinstance(error, Broken) and error.fresh:
                # The server had closed the idle connection: nothing of this request was read.
                return self._exchange(request, headers)
            raise unreachable(request, error, self.config.server) from error
        if answer.closes:
            self.close()
        if 200 <= answer.status < 300:
            return answer.body
        later = answer.headers.get("retry-after", "")
        raise from_answer(request, answer.status, answer.body, later)

    def _answer(self, request: Request, credential: Credential, extra: Mapping[str, str]) -> Answer:
        server = urlsplit(self.config.server)
        connection = self._connection = self._connection or self._opened(server, credential)
        connection.settimeout(request.timeout or None)
        headers = {"Host": server.netloc, **self._headers, **extra}
        if request.content_type:
            headers["Content-Type"] = request.content_type
        if credential.authorization:
            headers["Authorization"] = credential.authorization
        if request.body or request.writes:
            headers["Content-Length"] = str(len(request.body))
        given = (*headers.items(), *self.config.impersonation)
        target = server.path.rstrip("/") + request.target
        connection.sendall(asking(request.method, target, given, request.body))
        return answered(connection)

    def _opened(self, server: SplitResult, credential: Credential) -> socket.socket:
        host, port = server.hostname or "", server.port or _PORTS[server.scheme]
        proxy = self.config.proxy
        made = (
            through(proxy, host, port)
            if proxy
            else socket.create_connection((_plain(host), port), _CONNECT)
        )
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if server.scheme != "https":
            return made
        trusted, name = self._contexts.current(credential), self.config.trust.server_name or host
        return trusted.wrap_socket(made, server_hostname=_plain(name))


def _plain(host: str) -> str:
    """As bytes where that is possible: for text Python loads its rules for international names."""
    return cast(str, host.encode()) if host.isascii() else host


def through(proxy: str, host: str, port: int) -> socket.socket:
    """A connection to the host by way of an HTTP proxy."""
    parts = urlsplit(proxy)
    made = socket.create_connection(
        (parts.hostname or "", parts.port or _PORTS[parts.scheme]), _CONNECT
    )
    if parts.scheme == "https":
        made = ssl.create_default_context().wrap_socket(made, server_hostname=parts.hostname)
    headers = [("Host", f"{host}:{port}")]
    if parts.username:
        login = basic(unquote(parts.username), unquote(parts.password or ""))
        headers.append(("Proxy-Authorization", login))
    made.sendall(asking("CONNECT", f"{host}:{port}", headers, b""))
    status = tunnelled(made)
    if status != 200:
        made.close()
        raise ConnectionRefusedError(0, f"the proxy refuses it with {status}")
    return made


def unreachable(request: Request, error: BaseException, server: str) -> Unreachable:
    """The words for a failed exchange, and whether the server may have seen the request."""
    what, why = _words(error, server)
    return Unreachable(request, what, why, sent=what in ("time-out", "broken"))


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
