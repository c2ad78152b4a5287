"""How many reviews at once, for how long, and from which callers (S-14)."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp import web

from mpi_trainer.webhook.concurrency import (
    ReviewLimits,
    ask_for_certificates,
    known_callers,
    limited,
)
from tests.sim.certificates import Authority, Pair, serving


@asynccontextmanager
async def served(app: web.Application, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"{'https' if context else 'http'}://localhost:{port}/"
    finally:
        await runner.cleanup()


async def code(session: aiohttp.ClientSession, url: str) -> int:
    async with session.post(url, data=b"{}") as answer:
        return answer.status


def test_beyond_what_waits_callers_are_turned_away_at_once() -> None:
    """S-14: whoever sends thousands of reviews gets no memory for them."""

    async def run() -> tuple[list[int], int]:
        busy, most, gate = 0, 0, asyncio.Event()

        async def review(_: web.Request) -> web.Response:
            nonlocal busy, most
            busy += 1
            most = max(most, busy)
            await gate.wait()
            busy -= 1
            return web.Response()

        app = web.Application(middlewares=[limited(ReviewLimits(at_once=2, waiting=3))])
        app.router.add_post("/", review)
        async with served(app) as url, aiohttp.ClientSession() as session:
            calls = [asyncio.ensure_future(code(session, url)) for _ in range(20)]
            done, _ = await asyncio.wait(calls, timeout=2)
            turned = [call.result() for call in done]
            gate.set()
            served_late = await asyncio.gather(*(call for call in calls if call not in done))
            return sorted([*turned, *served_late]), most

    codes, most = asyncio.run(run())
    assert codes == [200] * 5 + [429] * 15
    assert most == 2


def test_a_review_that_takes_too_long_is_ended_and_says_so() -> None:
    """S-14"""

    async def run() -> int:
        async def review(_: web.Request) -> web.Response:
            await asyncio.sleep(60)
            return web.Response()

        app = web.Application(middlewares=[limited(ReviewLimits(seconds=0.1))])
        app.router.add_post("/", review)
        async with served(app) as url, aiohttp.ClientSession() as session:
            return await code(session, url)

    assert asyncio.run(run()) == 504


def test_only_callers_with_the_right_certificate_are_answered(tmp_path: Path) -> None:
    """S-14: others who reach the Service would get figures of any namespace."""
    ours, others, servers = Authority("ours"), Authority("others"), Authority("servers")
    context = serving(servers.pair("webhook", "localhost"), tmp_path)
    (tmp_path / "clients.pem").write_bytes(ours.certificate)
    ask_for_certificates(context, str(tmp_path / "clients.pem"))

    async def run(*pairs: Pair | None) -> list[int]:
        async def review(_: web.Request) -> web.Response:
            return web.Response()

        app = web.Application(middlewares=[known_callers(["kube-apiserver"])])
        app.router.add_post("/", review)
        codes = []
        async with served(app, context) as url:
            for pair in pairs:
                connector = aiohttp.TCPConnector(ssl=calling(servers, pair, tmp_path))
                async with aiohttp.ClientSession(connector=connector) as session:
                    try:
                        codes.append(await code(session, url))
                    except (aiohttp.ClientError, ssl.SSLError, ConnectionError):
                        codes.append(0)
        return codes

    codes = asyncio.run(
        run(None, ours.pair("kube-apiserver"), ours.pair("eve"), others.pair("kube-apiserver"))
    )
    assert codes == [401, 200, 403, 0]


def calling(servers: Authority, pair: Pair | None, folder: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=servers.certificate.decode())
    if pair is not None:
        (folder / "client.pem").write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(folder / "client.pem")
    return context
