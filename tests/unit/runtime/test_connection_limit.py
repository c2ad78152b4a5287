"""Connections to a server that every pod reaches: what one of them cannot take away."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from mpi_trainer.controller.statusserver.callers import Callers
from mpi_trainer.controller.statusserver.server import OF_A_JOB, Endpoint
from mpi_trainer.controller.statusserver.writes import ReportWrites
from mpi_trainer.runtime import certificates
from mpi_trainer.runtime.connection_limit import MOST, ConnectionLimit
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.tls import ServerCertificate

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]
A, B = "127.0.0.2", "127.0.0.3"
EMPTY = (
    b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    b"Authorization: %s\r\nContent-Length: 2\r\n\r\n"
)


def shown() -> ssl.SSLContext:
    chain = certificates.first_chain(("localhost",), datetime.now(UTC))
    context = ServerCertificate()
    context.show(chain.server.certificate, chain.server.key)
    return context.context


@asynccontextmanager
async def entered(most: int, handler: Any = None) -> AsyncIterator[tuple[int, web.AppRunner]]:
    async def fine(_: web.Request) -> web.Response:
        return web.Response(text="fine")

    app = web.Application()
    app.router.add_route("*", "/", handler or fine)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        async with ConnectionLimit(runner, shown(), most, 0.001).open("127.0.0.1", 0) as port:
            yield port, runner
    finally:
        await runner.cleanup()


async def knock(port: int, address: str, *, tls: bool = True) -> Pair:
    trust = ssl.create_default_context() if tls else None
    if trust is not None:
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    return await asyncio.open_connection("127.0.0.1", port, ssl=trust, local_addr=(address, 0))


async def ended(pair: Pair) -> bool:
    try:
        async with asyncio.timeout(10):
            return await pair[0].read() == b""
    except ConnectionError:
        return True


async def answer(pair: Pair, text: bytes = b"") -> bytes:
    pair[1].write(text or b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    async with asyncio.timeout(10):
        return await pair[0].read()


def test_who_says_nothing_leaves_room_for_others() -> None:
    """With and without a handshake; each connection would cost 300 KB of the controller's memory,
    and 1,700 of them its life."""

    async def scenario() -> None:
        async with entered(4) as (port, runner):
            mute = [await knock(port, A, tls=n < 3) for n in range(20)]
            refused = [await ended(one) for one in mute[4:]]
            assert all(refused)
            assert runner.server is not None and len(runner.server.connections) <= 4
            for _ in range(6):
                assert b"fine" in await answer(await knock(port, B))
            for _, writer in mute:
                writer.close()

    asyncio.run(scenario())


def test_who_has_most_gives_way() -> None:
    async def scenario() -> None:
        async with entered(3) as (port, _):
            first, second = await knock(port, A), await knock(port, A)
            other, last = await knock(port, B), await knock(port, B)
            assert await ended(first)
            for one in (second, other, last):
                assert b"fine" in await answer(one)

    asyncio.run(scenario())


def test_slow_bodies_of_one_job_leave_room_for_others() -> None:
    async def scenario() -> None:
        class Trusting(Callers):
            async def job_uid(self, authorization: str, key: Key) -> str:
                return authorization

        nobody: Any = None
        endpoint = Endpoint(Trusting(nobody), ReportWrites(nobody))

        async def at_root(request: web.Request) -> web.Response:
            request.match_info.update(namespace="team", name="pi")
            return await endpoint.answer(request)

        async with entered(MOST, at_root) as (port, _):
            slow = [await knock(port, A) for _ in range(OF_A_JOB + 1)]
            for _, writer in slow:
                writer.write(EMPTY % b"greedy")
            reading = [asyncio.create_task(reader.readline()) for reader, _ in slow]
            answered, _ = await asyncio.wait(reading, timeout=5, return_when="FIRST_COMPLETED")
            assert [b" 429 " in one.result() for one in answered] == [True]
            assert b" 200 " in await answer(await knock(port, B), EMPTY % b"other" + b"{}")
            for _, writer in slow:
                writer.close()

    asyncio.run(scenario())
