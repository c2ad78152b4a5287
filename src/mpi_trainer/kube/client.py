"""The transport: sends `Request` values to one API server and gives typed answers.

Every wait is bounded. Failures are `KubeError`s that say whether the request may have run. A
write is neither sent nor waited for once `deadline` says that our time is over. Danger: a write
that ends in `Unreachable` with `sent` may have happened; look before repeating it.
"""

from __future__ import annotations

import asyncio
import copy
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final, Self, TypeVar, overload

import aiohttp
import msgspec
from multidict import CIMultiDict
from yarl import URL

from mpi_trainer import __version__
from mpi_trainer.api import bounds
from mpi_trainer.api.yaml import typed
from mpi_trainer.kube.config import Config
from mpi_trainer.kube.connection import abandon, connector, once, unreachable
from mpi_trainer.kube.credentials import Credential
from mpi_trainer.kube.errors import (
    Garbled,
    KubeError,
    PastDeadline,
    Unauthorized,
    from_answer,
)
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.retries import wait_before
from mpi_trainer.kube.stream_lines import LineSplitter, batched_chunks
from mpi_trainer.kube.trust import Contexts

T = TypeVar("T")
Observe = Callable[[str, str, int, float], None]
Deadline = Callable[[], float]
_CONNECT: Final = 10.0
_SMALL: Final = 1 << 20
_HEARTBEAT: Final = 20.0
_NEVER: Final = float("inf")


class Client:
    """One API server. Use it as an async context manager, in one event loop."""

    def __init__(
        self,
        config: Config,
        *,
        user_agent: str = f"mpi-trainer/{__version__}",
        observe: Observe | None = None,
        deadline: Deadline | None = None,
        parallel: int = 32,
    ) -> None:
        """`observe` hears (method, route, code or 0, seconds) of every try; `deadline` gives the
        seconds left for writing; at most `parallel` calls are on the way at once."""
        self.config = config
        self._observe = observe
        self._deadline = deadline
        self._contexts = Contexts(config.trust)
        self._room = asyncio.Semaphore(parallel)
        self._login = asyncio.Lock()
        self._headers = CIMultiDict(
            (
                ("User-Agent", user_agent),
                ("Accept", "application/json"),
                ("Accept-Encoding", "gzip" if config.compress else "identity"),
                *config.impersonation,
            )
        )
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=connector(),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
            trust_env=False,
            middlewares=(once,),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()
            self._session = None

    def until(self, deadline: Deadline | None) -> Client:
        """This open client, over the same connections, with another deadline for writes."""
        other = copy.copy(self)
        other._deadline = deadline
        return other

    @overload
    async def call(self, request: Request, kind: None) -> None: ...
    @overload
    async def call(self, request: Request, kind: type[T]) -> T: ...
    @overload
    async def call(self, request: Request, kind: Any = Any) -> Any: ...

    async def call(self, request: Request, kind: Any = Any) -> Any:
        """Send it and decode the answer to `kind`; None does not look at the answer."""
        body = await self.fetch(request)
        return None if kind is None else self.decode(request, body, kind)

    async def fetch(self, request: Request) -> bytes:
        """Send it, again where that is safe, and give the answer's body."""
        tried, renewed = 0, False
        while True:
            tried += 1
            try:
                async with self._room:
                    return await self._exchange(request)
            except Unauthorized:
                # Nothing was processed: once more if the credential has been renewed.
                if renewed or not await self._renewed():
                    raise
                renewed = True
            except KubeError as error:
                wait = wait_before(request, error, tried, random.random())
                if wait is None:
                    raise
                await asyncio.sleep(wait)

    async def beginning(self, request: Request, most: int) -> bytes:
        """The first `most` bytes of an answer that a pod behind the API server may have written.

        Not repeated; what has not come within the request's time is not waited for.
        """
        body = bytearray()
        async with self._stream(request) as answer, asyncio.timeout(request.timeout):
            async for piece in answer.content.iter_any():
                body += piece
                if len(body) >= most:
                    break
        return bytes(body[:most])

    def decode(self, request: Request, body: bytes, kind: Any) -> Any:
        """An answer as a value."""
        try:
            return typed.decode(body, kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Garbled(request, str(error)) from error

    async def lines(
        self, request: Request, longest: int = bounds.HELD
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a stream as they come, without their ends; those of more than `longest`
        bytes in parts.

        Ends when the server ends it; `Unreachable` when it breaks or is silent for too long.
        Not repeated: only the caller knows from where to go on.
        """
        async with aclosing(self.batches(request, longest)) as batches:
            async for batch in batches:
                for line in batch:
                    yield line

    async def batches(
        self, request: Request, longest: int = bounds.HELD
    ) -> AsyncGenerator[list[bytes], None]:
        """`lines`, as many at once as there are: cheaper where lines come in floods."""
        split = LineSplitter(longest)
        async with (
            self._stream(request) as answer,
            aclosing(batched_chunks(answer, request.gather)) as chunks,
        ):
            async for chunk in chunks:
                if lines := split.feed(chunk):
                    yield lines
        if rest := split.rest():
            yield [rest]

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer to be read as it comes; failures inside the block become `Unreachable`."""
        renewed = False
        while True:
            async with self._answer(request, streams=True) as answer:
                if answer.status == 200:
                    yield answer
                    return
                error = await _refusal(request, answer)
            if renewed or not isinstance(error, Unauthorized) or not await self._renewed():
                raise error
            renewed = True

    @asynccontextmanager
    async def connect(
        self, request: Request, protocols: tuple[str, ...]
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """A websocket; where the server refuses, its own words as ApiError."""
        try:
            socket = await self._opened(request, protocols)
        except Unauthorized:
            if not await self._renewed():
                raise
            socket = await self._opened(request, protocols)
        try:
            yield socket
        except aiohttp.ClientError as error:
            raise unreachable(request, error, self.config.server) from error
        finally:
            await socket.close()

    async def _opened(
        self, request: Request, protocols: tuple[str, ...]
    ) -> aiohttp.ClientWebSocketResponse:
        session, options = await self._prepared(request)
        try:
            async with asyncio.timeout(request.timeout):
                socket: aiohttp.ClientWebSocketResponse = await session.ws_connect(
                    self._url(request),
                    protocols=protocols,
                    heartbeat=_HEARTBEAT,
                    max_msg_size=0,
                    timeout=aiohttp.ClientWSTimeout(ws_close=5.0),
                    **options,
                )
                return socket
        except aiohttp.WSServerHandshakeError as error:
            # The refusal's body is not kept by the websocket client; a plain request gets it.
            await self._exchange(request)
            raise from_answer(request, error.status, b"the server opened no websocket") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise unreachable(request, error, self.config.server) from error

    async def _exchange(self, request: Request) -> bytes:
        async with self._answer(request) as answer:
            if 200 <= answer.status < 300:
                return await answer.read()
            raise await _refusal(request, answer)

    def _limits(self, request: Request, streams: bool) -> aiohttp.ClientTimeout:
        limit = request.timeout or None
        if streams:
            return aiohttp.ClientTimeout(
                total=None, sock_connect=_CONNECT, sock_read=limit, ceil_threshold=_NEVER
            )
        if self._deadline and request.writes:
            left = self._deadline()
            if left <= 0:
                raise PastDeadline(request)
            limit = min(left, limit or left)
        # Exactly, not rounded up: a leader's write may not outlive its lease.
        return aiohttp.ClientTimeout(total=limit, sock_connect=_CONNECT, ceil_threshold=_NEVER)

    @asynccontextmanager
    async def _answer(
        self, request: Request, streams: bool = False
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        session, options = await self._prepared(request)
        # After the credential was had, which may take a program's time.
        limits = self._limits(request, streams)
        began, ended, code = time.perf_counter(), 0.0, 0
        try:
            async with session.request(
                request.method,
                self._url(request),
                data=request.body or None,
                timeout=limits,
                allow_redirects=False,
                **options,
            ) as answer:
                code = answer.status
                # A stream's answer has come with its first line, however long it lasts.
                ended = time.perf_counter() if streams else 0.0
                try:
                    yield answer
                finally:
                    abandon(answer)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise unreachable(request, error, self.config.server) from error
        finally:
            if self._observe:
                took = (ended or time.perf_counter()) - began
                self._observe(request.method, request.route or request.path, code, took)

    async def _prepared(self, request: Request) -> tuple[aiohttp.ClientSession, dict[str, Any]]:
        """The session, and what a request takes of credentials and TLS at this moment."""
        if self._session is None:
            raise RuntimeError("the client is not open: use it in `async with`")
        credential = await self._credential()
        options: dict[str, Any] = {"headers": request.headers(credential.authorization)}
        if self.config.proxy:
            options["proxy"] = self.config.proxy
        if self.config.server.startswith("https:"):
            options["ssl"] = self._contexts.current(credential)
            if self.config.trust.server_name:
                options["server_hostname"] = self.config.trust.server_name
        return self._session, options

    async def _credential(self) -> Credential:
        source = self.config.credentials
        credential = source.ready()
        if credential is not None:
            return credential
        async with self._login:
            ready = source.ready()
            return ready if ready is not None else await asyncio.to_thread(source.fetch)

    async def _renewed(self) -> bool:
        async with self._login:
            return await asyncio.to_thread(self.config.credentials.refused)

    def _url(self, request: Request) -> URL:
        return URL(self.config.server + request.target, encoded=True)


async def _refusal(request: Request, answer: aiohttp.ClientResponse) -> KubeError:
    body = await answer.content.read(_SMALL)
    return from_answer(request, answer.status, body, answer.headers.get("Retry-After", ""))
