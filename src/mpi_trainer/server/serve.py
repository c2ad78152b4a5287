"""The server as a process: it listens until it is asked to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from types import ModuleType
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from mpi_trainer.api.errors import ExplainedError
from mpi_trainer.sdk.backends.backend import Backend
from mpi_trainer.server.app import Settings, Shell
from mpi_trainer.server.callers import Callers, Loopback
from mpi_trainer.server.calls import Calls

LOOPBACK: Final = "127.0.0.1"
SHUTDOWN_SECONDS: Final = 20.0
"""for calls that are under way; within the 30 s that a pod has to end"""
_NAMES: Final = (LOOPBACK, "localhost")


class _NoLines(logging.Filter):
    """aiohttp repeats the lines of a request that is no HTTP, and a token may be in one of them;
    whoever sent it is told."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


_http_log = logging.getLogger("mpi_trainer.server.http")
_http_log.addFilter(_NoLines())


@asynccontextmanager
async def listening(
    callers: Callers,
    host: str,
    port: int,
    settings: Settings | None = None,
    calls: Calls | None = None,
) -> AsyncIterator[int]:
    """Serves while the block runs; the port, which the system chooses where it is 0. `calls` are
    given where others count them as well."""
    settings = settings or Settings()
    calls = calls or Calls(callers, settings.rate, settings.at_once, settings.live)
    shell = Shell(calls, settings)
    runner = web.AppRunner(
        shell.app(),
        access_log=None,
        logger=_http_log,
        handle_signals=False,
        max_field_size=16 * 1024 + 512,
        shutdown_timeout=SHUTDOWN_SECONDS,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


async def serve_loopback(
    backend: Backend, port: int, opened: Callable[[str], None], grpc_port: int | None = None
) -> None:
    """For the person who starts it; `opened` gets the address with its token."""
    free = await _bound(port)
    names = frozenset(f"{name}:{free}" for name in _NAMES)
    callers = Loopback(backend, cookie=f"odh-session-{free}")
    settings = Settings(hosts=names)
    calls = Calls(callers, settings.rate, settings.at_once, settings.live)
    async with AsyncExitStack() as stack:
        if grpc_port is not None:
            await stack.enter_async_context(rpc().listening(calls, LOOPBACK, grpc_port))
        await stack.enter_async_context(listening(callers, LOOPBACK, free, settings, calls))
        opened(f"http://{LOOPBACK}:{free}/?token={callers.token}")
        await stopped()


def rpc() -> ModuleType:
    """The module that serves gRPC, which not every installation has the packages for."""
    try:
        return import_module("mpi_trainer.server.rpc.listening")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "mpi_trainer":
            raise
        raise ExplainedError(
            "gRPC needs packages that are not installed here",
            "Install them with `pip install 'openshift-ai-sdk[grpc]'`, or leave out --grpc-port.",
        ) from error


async def _bound(port: int) -> int:
    """A free port where none is asked for: the names that the server answers to contain it."""
    if port:
        return port
    server = await asyncio.start_server(lambda reader, writer: None, LOOPBACK, 0)
    async with server:
        return int(server.sockets[0].getsockname()[1])


async def stopped() -> None:
    """Returns at the first SIGINT or SIGTERM; a second one ends the process."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.remove_signal_handler(number)
