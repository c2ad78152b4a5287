"""A test may fork although others have used gRPC in the same process."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
from contextlib import suppress
from typing import Any

import grpc


class Garbage:
    """Refers to itself, so that only a collection ends it."""

    def __init__(self, *held: Any) -> None:
        self.held = (self, *held)


async def _asked_in_vain() -> None:
    channel = grpc.aio.insecure_channel("127.0.0.1:9")
    call: Any = channel.unary_unary("/nobody/Answers")(b"", timeout=0.2)  # type: ignore[arg-type]
    Garbage(channel, call)
    with suppress(grpc.aio.AioRpcError):
        await call


def test_a_collection_in_a_forked_process_ends() -> None:
    gc.disable()
    try:
        asyncio.run(_asked_in_vain())
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            gc.collect()
            os.write(writer, b"!")
            os._exit(0)
        ended = bool(select.select([reader], [], [], 20)[0])
    finally:
        gc.enable()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    os.close(writer)
    assert ended
