"""The gRPC server: where it listens, and how much of anything it takes.

Reflection and health answer without a login: they tell what this file and the .proto file tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import SERVICE_NAME as HEALTH
from grpc_health.v1.health import aio as health
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from mpi_trainer.server.callers import LONGEST_TOKEN
from mpi_trainer.server.calls import AT_ONCE, Calls
from mpi_trainer.server.endpoint import LARGEST_BODY
from mpi_trainer.server.rpc.methods import SERVICE
from mpi_trainer.server.rpc.service import Context, Service

SHUTDOWN_SECONDS: Final = 20.0
WITHOUT_LOGIN: Final = 100
"""open streams of reflection and of health, each"""
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", 2 * LARGEST_BODY),
    ("grpc.max_send_message_length", 16 * LARGEST_BODY),
    ("grpc.max_metadata_size", LONGEST_TOKEN + 4096),
    ("grpc.absolute_max_metadata_size", LONGEST_TOKEN + 4096),
    ("grpc.max_concurrent_streams", 100),
    ("grpc.max_connection_idle_ms", 600_000),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # Else a second server takes the same port, and half of the calls.
    ("grpc.so_reuseport", 0),
)


_add_reflection: Final[Any] = reflection_pb2_grpc.add_ServerReflectionServicer_to_server


@asynccontextmanager
async def listening(
    calls: Calls,
    host: str,
    port: int,
    credentials: grpc.ServerCredentials | None = None,
    service: Service | None = None,
) -> AsyncIterator[int]:
    """Serves while the block runs, without TLS where there are no credentials; the port, which the
    system chooses where it is 0."""
    most = AT_ONCE + calls.hub.settings.streams + 2 * WITHOUT_LOGIN
    server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=most)
    ours = service or Service(calls)
    server.add_generic_rpc_handlers((ours.handler(),))
    healthy = _Health()
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    names = (SERVICE, HEALTH, reflection.SERVICE_NAME)
    _add_reflection(_Reflection(names), server)
    bound = _bound(server, f"[{host}]:{port}" if ":" in host else f"{host}:{port}", credentials)
    for name in ("", SERVICE):
        await healthy.set(name, health_pb2.HealthCheckResponse.SERVING)
    await server.start()
    try:
        yield bound
    finally:
        with suppress(TimeoutError):  # somebody who reads nothing
            async with asyncio.timeout(1.0):
                await healthy.enter_graceful_shutdown()
        ours.end_streams()
        await server.stop(SHUTDOWN_SECONDS)


def _bound(
    server: grpc.aio.Server, address: str, credentials: grpc.ServerCredentials | None
) -> int:
    try:
        if credentials is None:
            return server.add_insecure_port(address)
        return server.add_secure_port(address, credentials)
    except RuntimeError as error:
        raise OSError(f"cannot listen on {address}") from error


def tls(certificate: Path, key: Path) -> grpc.ServerCredentials:
    """Of the files as they are at each new connection: certificates are renewed in place."""
    read = _Files(certificate, key)
    renewed: Any = read.renewed  # whose type does not say that None is good
    return grpc.dynamic_ssl_server_credentials(read.first, renewed)


class _Files:
    def __init__(self, certificate: Path, key: Path) -> None:
        self._paths = (key, certificate)
        self._seen = self._stamps()
        self.first = self._read()

    def renewed(self) -> grpc.ServerCertificateConfiguration | None:
        """None where nothing has changed, or the files cannot be read now."""
        try:
            now = self._stamps()
            if now == self._seen:
                return None
            made = self._read()
        except OSError:
            return None
        self._seen = now
        return made

    def _stamps(self) -> tuple[int, ...]:
        return tuple(path.stat().st_mtime_ns for path in self._paths)

    def _read(self) -> grpc.ServerCertificateConfiguration:
        key, certificate = (path.read_bytes() for path in self._paths)
        return grpc.ssl_server_certificate_configuration([(key, certificate)])


class _Room:
    """For what anybody may open."""

    def __init__(self) -> None:
        self._open = 0

    @contextmanager
    def taken(self) -> Iterator[bool]:
        """Whether there was room."""
        self._open += 1
        try:
            yield self._open <= WITHOUT_LOGIN
        finally:
            self._open -= 1


class _Health(health.HealthServicer):
    def __init__(self) -> None:
        super().__init__()
        self._room = _Room()

    async def Watch(self, request: Any, context: Context) -> None:  # noqa: N802 - of the interface
        with self._room.taken() as taken:
            if not taken:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many watch health")
            await super().Watch(request, context)


class _Reflection:
    def __init__(self, names: tuple[str, ...]) -> None:
        self._servicer: Any = reflection.aio.ReflectionServicer(names)
        self._room = _Room()

    async def ServerReflectionInfo(  # noqa: N802 - of the interface
        self, requests: AsyncIterator[Any], context: Context
    ) -> AsyncIterator[Any]:
        with self._room.taken() as taken:
            if not taken:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many ask for methods")
            async for answer in self._servicer.ServerReflectionInfo(requests, context):
                yield answer
