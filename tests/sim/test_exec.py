"""Commands in containers over websockets, that end well, badly or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from mpi_trainer.kube import exec as kube_exec
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.config import Config
from mpi_trainer.kube.errors import ApiError, Forbidden, Garbled, Unreachable

Act = Callable[[web.WebSocketResponse], Awaitable[None]]
GOOD = {"metadata": {}, "status": "Success"}


def play(
    act: Act | None, script: Callable[[Client], Awaitable[None]], protocol: str = "v5"
) -> list[str]:
    """A server that does `act` on every websocket, or refuses them all; the queries it saw."""
    seen: list[str] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        seen.append(request.query_string)
        if act is None:
            status = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "not you"}
            return web.json_response(status, status=403)
        socket = web.WebSocketResponse(protocols=[f"{protocol}.channel.k8s.io"])
        await socket.prepare(request)
        await act(socket)
        await socket.close()
        return socket

    async def run() -> None:
        app = web.Application()
        app.router.add_get("/api/v1/namespaces/n/pods/p/exec", handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            async with Client(Config(f"http://127.0.0.1:{runner.addresses[0][1]}")) as client:
                async with asyncio.timeout(20):
                    await script(client)
        finally:
            await runner.cleanup()

    asyncio.run(run())
    return seen


async def finish(socket: web.WebSocketResponse, status: object) -> None:
    await socket.send_bytes(b"\x03" + json.dumps(status).encode())


def test_output_comes_by_stream_and_success_is_zero() -> None:
    async def act(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\x01")
        await socket.send_bytes(b"\x01one ")
        await socket.send_bytes(b"\x02two")
        await socket.send_bytes(b"\x01three")
        await finish(socket, GOOD)

    async def script(client: Client) -> None:
        done = await kube_exec.run(client, "n", "p", ["echo", "a b"], container="c")
        assert (done.code, done.stdout, done.stderr) == (0, b"one three", b"two")

    (query,) = play(act, script)
    assert query == (
        "container=c&command=echo&command=a b&stdin=false&stdout=true&stderr=true&tty=false"
    )


def test_an_exit_code_is_a_result_not_an_error() -> None:
    async def act(socket: web.WebSocketResponse) -> None:
        causes = [{"reason": "ExitCode", "message": "17"}]
        await finish(
            socket,
            {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}},
        )

    async def script(client: Client) -> None:
        assert (await kube_exec.run(client, "n", "p", ["false"])).code == 17

    play(act, script)


def test_a_command_that_cannot_start_is_the_servers_error() -> None:
    async def act(socket: web.WebSocketResponse) -> None:
        await finish(socket, {"status": "Failure", "reason": "InternalError", "message": "no sh"})

    async def script(client: Client) -> None:
        with pytest.raises(ApiError, match="no sh"):
            await kube_exec.run(client, "n", "p", ["sh"])

    play(act, script)


@pytest.mark.parametrize("protocol", ["v5", "v4"])
def test_input_is_sent_and_ended_where_that_can_be_said(protocol: str) -> None:
    async def act(socket: web.WebSocketResponse) -> None:
        first = await socket.receive_bytes()
        told = await socket.receive_bytes() if protocol == "v5" else b"\xff\x00"
        await socket.send_bytes(b"\x01" + first + told)
        await finish(socket, GOOD)

    async def script(client: Client) -> None:
        done = await kube_exec.run(client, "n", "p", ["cat"], stdin=b"hello")
        assert done.stdout == b"\x00hello\xff\x00"

    play(act, script, protocol)


def test_a_refusal_keeps_the_servers_words() -> None:
    async def script(client: Client) -> None:
        with pytest.raises(Forbidden, match="not you"):
            await kube_exec.run(client, "n", "p", ["ls"])

    play(None, script)


def test_a_connection_that_ends_early_is_no_success() -> None:
    async def act(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\x01half")

    async def script(client: Client) -> None:
        with pytest.raises(Unreachable, match="before the command did"):
            await kube_exec.run(client, "n", "p", ["ls"])

    play(act, script)


def test_a_command_that_never_ends_costs_its_time_and_no_more() -> None:
    async def act(socket: web.WebSocketResponse) -> None:
        await socket.receive()

    async def script(client: Client) -> None:
        with pytest.raises(Unreachable, match=r"did not end in 0\.3 s"):
            await kube_exec.run(client, "n", "p", ["sleep"], seconds=0.3)

    play(act, script)


def test_an_error_of_the_caller_stays_its_own() -> None:
    async def act(socket: web.WebSocketResponse) -> None:
        await socket.receive()

    async def script(client: Client) -> None:
        request = requests.execute("n", "p", ["sh"])
        with pytest.raises(PermissionError):
            async with kube_exec.session(client, request):
                raise PermissionError("a file of the caller")

    play(act, script)


def test_a_command_that_prints_without_end_is_left() -> None:
    """`odh top` enters pods of others, whose image has any /bin/sh."""

    async def act(socket: web.WebSocketResponse) -> None:
        for _ in range(2 * kube_exec.MOST_OUTPUT // 65536):
            await socket.send_bytes(b"\x01" + b"y" * 65536)
        await finish(socket, GOOD)

    async def script(client: Client) -> None:
        with pytest.raises(Garbled, match="printed more than 16 MiB"):
            await kube_exec.run(client, "n", "p", ["/bin/sh"])

    play(act, script)
