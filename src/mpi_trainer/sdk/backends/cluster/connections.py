"""The open connection of a backend in each event loop that uses it.

A client belongs to one loop, and a backend may be used from several: a notebook's, the SDK's own
thread, one `asyncio.run` after another. Guarantee: a loop that ends, or is idle for a minute,
leaves no connection behind, and no user has to close anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakKeyDictionary

from mpi_trainer.kube.config import Config
from mpi_trainer.kube.errors import ApiError
from mpi_trainer.kube.requests import Fetcher, Request
from mpi_trainer.sdk.backends.backend import Key
from mpi_trainer.sdk.backends.cluster.joint_reads import JointReads
from mpi_trainer.sdk.backends.cluster.kinds import Kind
from mpi_trainer.sdk.backends.cluster.namespace_limits import Demands
from mpi_trainer.sdk.backends.cluster.outages import Outages, Say
from mpi_trainer.sdk.backends.cluster.watches import Watches

if TYPE_CHECKING:
    from mpi_trainer.kube.client import Client

T = TypeVar("T")
OpenClient = Callable[[Config], AbstractAsyncContextManager[Fetcher]]
IDLE: Final = 60.0


def streaming(config: Config) -> AbstractAsyncContextManager[Fetcher]:
    """The client that can do everything."""
    from mpi_trainer.kube.client import Client

    return Client(config)


def single_answers(config: Config) -> AbstractAsyncContextManager[Fetcher]:
    """The client of short commands: it starts in a fraction of the time, blocks the loop while it
    waits, and does not stream."""
    from mpi_trainer.kube.oneshot import BlockingFetcher

    return BlockingFetcher(config)


class ApiServer:
    """The API server as one event loop reaches it.

    `served` are the kinds that count; no job of another is ever seen or touched. `kinds` remembers
    of which of them each job is. `demands` of a namespace are read once for jobs that are submitted
    at the same time.
    """

    def __init__(self, client: Fetcher, outages: Outages, served: tuple[Kind, ...]) -> None:
        self.client = client
        self.served = served
        self.outages = outages
        self.kinds: dict[Key, Kind] = {}
        self.demands: JointReads[Demands] = JointReads()
        self.users = 0
        self.used_at = asyncio.get_running_loop().time()

    @cached_property
    def streams(self) -> Client:
        """The client for watches, logs and exec, which `single_answers` does not have."""
        from mpi_trainer.kube.client import Client

        if not isinstance(self.client, Client):
            raise RuntimeError("this connection is for single answers and does not stream")
        return self.client

    @cached_property
    def watches(self) -> Watches:
        return Watches(self.streams, self.outages)

    async def call(self, request: Request, kind: Any = Any) -> Any:
        """The answer as a `kind`. An outage is waited out where repeating does no harm."""

        async def once() -> Any:
            return await self.client.call(request, kind)

        try:
            return await self.outages.retried(once, again=request.repeatable)
        except ApiError:
            self.outages.note_answer()
            raise


class Connections:
    """One connection for each event loop."""

    def __init__(
        self, config: Config, say: Say, served: tuple[Kind, ...], open_client: OpenClient
    ) -> None:
        self._config = config
        self._say = say
        self._served = served
        self._open_client = open_client
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _Task] = WeakKeyDictionary()

    @asynccontextmanager
    async def current(self) -> AsyncIterator[ApiServer]:
        """The running loop's connection; kept open while anybody is inside."""
        loop = asyncio.get_running_loop()
        task = self._by_loop.get(loop)
        if task is None or task.over or task.task.done():
            task = self._by_loop[loop] = _Task(self._open_client(self._config), self._server)
        found = await asyncio.shield(task.opened)
        found.users += 1
        try:
            yield found
        finally:
            found.users -= 1
            found.used_at = loop.time()

    def _server(self, client: Fetcher) -> ApiServer:
        return ApiServer(client, Outages(self._config.server, self._say), self._served)


class _Task:
    """Holds a connection open: the end of a loop cancels its tasks, and so closes it too."""

    def __init__(
        self,
        client: AbstractAsyncContextManager[Fetcher],
        reached: Callable[[Fetcher], ApiServer],
    ) -> None:
        loop = asyncio.get_running_loop()
        self.over = False
        self.opened: asyncio.Future[ApiServer] = loop.create_future()
        self.task = loop.create_task(self._hold(client, reached))

    async def _hold(
        self,
        client: AbstractAsyncContextManager[Fetcher],
        reached: Callable[[Fetcher], ApiServer],
    ) -> None:
        async with client as opened:
            held = reached(opened)
            self.opened.set_result(held)
            loop = asyncio.get_running_loop()
            while held.users or loop.time() - held.used_at < IDLE:  # noqa: ASYNC110 - a time-out
                await asyncio.sleep(IDLE)
            self.over = True
