"""One request at a time, without an event loop: what a short command needs of an API server.

The same `Request` values, errors, credentials and rules for repeating as `kube.client`; importing
this costs a fifth of it, which is most of what a command line takes. One connection is kept from
call to call. Danger: it blocks, and it neither streams nor watches; use it in one thread.
"""

from __future__ import annotations

import gzip
import http.client
import random
import socket
import ssl
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeVar, overload
from urllib.parse import unquote, urlsplit

import msgspec

from mpi_trainer import __version__
from mpi_trainer.kube.config import Config
from mpi_trainer.kube.credentials import Credential, basic
from mpi_trainer.kube.errors import Garbled, KubeError, Unauthorized, Unreachable, from_answer
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
        self._connection: http.client.HTTPConnection | None = None

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
            return msgspec.json.decode(body, type=kind)
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
                wait = wait_before(request, error, tried, random.random())
                if wait is None:
                    raise
                time.sleep(wait)

    def _exchange(self, request: Request, headers: Mapping[str, str]) -> bytes:
        credential = self.config.credentials.ready() or self.config.credentials.fetch()
        fresh = self._connection is None
        try:
            answer = self._sent(request, credential, headers)
            body = _read(answer)
        except (http.client.HTTPException, OSError) as error:
            self.close()
            if not fresh and isinstance(error, http.client.RemoteDisconnected):
                # The server had closed the idle connection: nothing of this request was read.
                return self._exchange(request, headers)
            raise unreachable(request, error, self.config.server) from error
        if answer.will_close:
            self.close()
        if 200 <= answer.status < 300:
            return body
        raise from_answer(request, answer.status, body, answer.getheader("Retry-After", ""))

    def _sent(
        self, request: Request, credential: Credential, extra: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        connection = self._connection = self._connection or self._opened(credential)
        assert connection.sock is not None
        connection.sock.settimeout(request.timeout or None)
        connection.putrequest(request.method, self._target(request), skip_accept_encoding=True)
        headers = {**self._headers, **extra}
        if request.content_type:
            headers["Content-Type"] = request.content_type
        if credential.authorization:
            headers["Authorization"] = credential.authorization
        if request.body or request.writes:
            headers["Content-Length"] = str(len(request.body))
        for name, value in (*headers.items(), *self.config.impersonation):
            connection.putheader(name, value)
        connection.endheaders(request.body or None)
        return connection.getresponse()

    def _target(self, request: Request) -> str:
        return urlsplit(self.config.server).path.rstrip("/") + request.target

    def _opened(self, credential: Credential) -> http.client.HTTPConnection:
        server = urlsplit(self.config.server)
        host, port = server.hostname or "", server.port or _PORTS[server.scheme]
        proxy = urlsplit(self.config.proxy) if self.config.proxy else None
        via = (proxy.hostname or "", proxy.port or _PORTS[proxy.scheme]) if proxy else (host, port)
        made = http.client.HTTPConnection(*via, timeout=_CONNECT)
        if proxy:
            login = {}
            if proxy.username:
                name, password = unquote(proxy.username), unquote(proxy.password or "")
                login["Proxy-Authorization"] = basic(name, password)
            made.set_tunnel(host, port, login)
        made.connect()
        sock: socket.socket = made.sock
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if server.scheme == "https":
            trusted = self._contexts.current(credential)
            name = self.config.trust.server_name or host
            made.sock = trusted.wrap_socket(sock, server_hostname=name)
        return made


def _read(answer: http.client.HTTPResponse) -> bytes:
    body = answer.read()
    return gzip.decompress(body) if answer.getheader("Content-Encoding") == "gzip" else body


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
