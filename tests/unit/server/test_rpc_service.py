"""The service of gRPC, called without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend
from mpi_trainer.sdk.errors import K8sApiException
from mpi_trainer.server.callers import Caller, Login
from mpi_trainer.server.calls import Calls
from mpi_trainer.server.rpc.methods import SERVICE, STREAMS, Stream
from mpi_trainer.server.rpc.service import Service

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


class _Details:
    invocation_metadata = ()

    def __init__(self, method: str) -> None:
        self.method = method
