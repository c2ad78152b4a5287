"""The shell around the endpoints for gRPC: messages in, messages out.

What holds for every call is `calls.py`'s, as over HTTP. Guarantee: every problem is a status with
its details; a caller who leaves or whose deadline is over ends the work; a reader who takes nothing
for a minute is cut off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, Final, NoReturn

import grpc
from google.protobuf.message import Message

from mpi_trainer.server import problems
from mpi_trainer.server.calls import Calls
from mpi_trainer.server.problems import Refused, refused
from mpi_trainer.server.rpc import statuses
from mpi_trainer.server.rpc.asked import RpcAsked
from mpi_trainer.server.rpc.methods import METHODS, SERVICE, STREAMS, Method, Stream

WRITE_SECONDS: Final = 60.0
log = logging.getLogger("mpi_trainer.server")

Context = grpc.aio.ServicerContext[Any, Any]
Behaviour = Callable[[Any, Context], Awaitable[Any]]


class Service:
    def __init__(self, calls: Calls, write_seconds: float = WRITE_SECONDS) -> None:
        self._calls = calls
        self._write_seconds = write_seconds
        self._streams: set[asyncio.Task[Any]] = set()

    def handler(self) -> grpc.GenericRpcHandler:
        made: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        for method in METHODS:
            made[method.name] = grpc.unary_unary_rpc_method_handler(
                self._answering(method),
                request_deserializer=method.request.FromString,
                response_serializer=_written,
            )
        for stream in STREAMS:
            made[stream.name] = grpc.unary_stream_rpc_method_handler(
                self._streaming(stream),
                request_deserializer=stream.request.FromString,
                response_serializer=_written,
            )
        return grpc.method_handlers_generic_handler(SERVICE, made)

    def end_streams(self) -> None:
        """For a server that stops: their callers may open them again, elsewhere."""
        self._calls.hub.stopping.set()
        for task in self._streams:
            task.cancel()

    def _answering(self, method: Method) -> Any:
        async def answer(request: Message, context: Context) -> Message:
            try:
                asked = RpcAsked(request, _metadata(context))
                return method.message(await self._calls.answer(method.endpoint, asked))
            except Exception as error:
                await _abort(context, error, method.name)

        return answer

    def _streaming(self, stream: Stream) -> Any:
        hub = self._calls.hub

        async def send(request: Message, context: Context) -> None:
            try:
                asked = RpcAsked(request, _metadata(context))
                with self._ended_by_stop():
                    async with self._calls.streaming(asked) as caller:
                        call = await asked.live_call(stream, caller, hub)
                        async with aclosing(stream.run(call)) as messages:
                            await self._send(messages, context)
            except asyncio.CancelledError:
                if not hub.stopping.is_set():
                    raise
                await _abort(context, _stopping(), stream.name)
            except Exception as error:
                await _abort(context, error, stream.name)

        return send

    async def _send(self, messages: AsyncIterator[Message], context: Context) -> None:
        """Nothing is asked for before the last message is on its way. The headers go first: while
        a message that carries them is cut off, gRPC takes no status for the end."""
        await _to_its_end(context.send_initial_metadata(()))
        async for message in messages:
            try:
                async with asyncio.timeout(self._write_seconds):
                    await context.write(message)
            except TimeoutError:
                raise _slow(self._write_seconds) from None

    @contextmanager
    def _ended_by_stop(self) -> Iterator[None]:
        task = asyncio.current_task()
        assert task is not None, "a handler runs in a task"
        if self._calls.hub.stopping.is_set():
            raise _stopping()
        self._streams.add(task)
        try:
            yield
        finally:
            self._streams.discard(task)


def _metadata(context: Context) -> list[tuple[str, str | bytes]]:
    return [(str(name), value) for name, value in context.invocation_metadata() or ()]


def _written(message: Message) -> bytes:
    return message.SerializeToString()


async def _abort(context: Context, error: Exception, method: str) -> NoReturn:
    if isinstance(error, grpc.aio.AbortError):
        raise error
    found = problems.explained(error)
    if found is None:
        log.exception("a fault in %s", method)
        found = problems.fault()
    extra: tuple[tuple[str, str | bytes], ...] = ()
    if isinstance(error, Refused):
        extra = tuple((name.lower(), value) for name, value in error.headers)
    metadata = (*statuses.details(found), *extra)
    await context.abort(statuses.code(found), statuses.message(found), metadata)


async def _to_its_end(work: Awaitable[None]) -> None:
    """Whoever cancels this has to wait for it."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


def _slow(seconds: float) -> Refused:
    return refused(
        408,
        "slow-reader",
        f"nothing of this stream was read for {seconds:g} s",
        "Open it again; `since` skips lines that you have.",
    )


def _stopping() -> Refused:
    return refused(503, "stopping", "the server is being stopped", "Open the stream again.")
