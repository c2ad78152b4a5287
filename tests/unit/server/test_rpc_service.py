"""The service of gRPC, called without a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
import pytest

from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend
from mpi_trainer.sdk.errors import K8sApiException
from mpi_trainer.server.callers import Caller, Login
from mpi_trainer.server.calls import Calls
from mpi_trainer.server.rpc import service
from mpi_trainer.server.rpc.asked import RpcAsked
from mpi_trainer.server.rpc.methods import SERVICE, STREAMS, Stream
from mpi_trainer.server.rpc.service import Service
from mpi_trainer.server.rpc.v1 import mpijobs_pb2 as v1

# isort: split
import grpc


class Cluster:
    """Knows nobody, and notes what it is asked for beside that."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def user(self) -> str:
        raise K8sApiException("unauthorized: who is that?", 401)

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        raise AttributeError(name)


class Strangers:
    """Callers of whom only a made-up token is known."""

    def __init__(self) -> None:
        self.cluster = Cluster()

    def caller(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> Caller:
        backend = cast(ClusterBackend, self.cluster)
        return Caller("stranger", backend, login=Login(backend))


class Aborted(Exception):
    pass


class Context:
    """Of one call."""

    code: grpc.StatusCode | None = None

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", "Bearer made.up.token"),)

    async def abort(self, code: grpc.StatusCode, details: str, metadata: Any) -> None:
        self.code = code
        raise Aborted


@pytest.mark.parametrize("stream", STREAMS, ids=lambda one: one.name)
def test_no_stream_reads_anything_for_a_made_up_token(stream: Stream) -> None:
    async def run() -> None:
        known = Strangers()
        details = cast(grpc.HandlerCallDetails, _Details(f"/{SERVICE}/{stream.name}"))
        handler: Any = Service(Calls(known)).handler().service(details)
        context = Context()
        with pytest.raises(Aborted):
            await handler.unary_stream(stream.request(namespace="a", name="b"), context)
        assert (context.code, known.cluster.asked) == (grpc.StatusCode.UNAUTHENTICATED, [])

    asyncio.run(run())


def test_a_stop_is_told_while_the_first_message_is_still_on_its_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It does not fit into the connection of somebody who reads nothing."""

    async def endless(call: object) -> AsyncIterator[v1.LogLine]:
        yield v1.LogLine(text="x" * (8 << 20))
        await asyncio.sleep(60)

    @asynccontextmanager
    async def streaming(asked: object) -> AsyncIterator[None]:
        yield

    async def live_call(*words: object) -> None: ...

    (logs,) = [one for one in STREAMS if "Log" in one.name]
    monkeypatch.setattr(service, "STREAMS", (msgspec.structs.replace(logs, run=endless),))
    monkeypatch.setattr(RpcAsked, "live_call", live_call)

    async def run() -> grpc.StatusCode:
        calls = Calls(Strangers())
        monkeypatch.setattr(calls, "streaming", streaming)
        served, server = Service(calls), grpc.aio.server()
        server.add_generic_rpc_handlers((served.handler(),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        options = [("grpc.max_receive_message_length", -1)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options) as channel:
            open_it: Any = channel.unary_stream(f"/{SERVICE}/{logs.name}")
            call = open_it(b"")
            await asyncio.sleep(0.5)  # until the message is on its way
            served.end_streams()
            await asyncio.sleep(0.5)  # nothing is read until it has stopped
            async with asyncio.timeout(5):
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    _ = [len(message) async for message in call]
        await server.stop(None)
        return caught.value.code()

    assert asyncio.run(run()) is grpc.StatusCode.UNAVAILABLE


class _Details:
    invocation_metadata = ()

    def __init__(self, method: str) -> None:
        self.method = method
