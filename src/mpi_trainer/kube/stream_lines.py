"""The lines of a stream: cut out of chunks, and in a flood many at once.

Taking each event of a flood off its connection costs several times what decoding it does: many at
once share that cost. What comes alone is given at once; in a flood each line waits in the system's
buffers, for as long as the request allows and no longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import aiohttp

from mpi_trainer.api import bounds


class LineSplitter:
    """Feed it chunks; it gives whole lines without their ends and keeps the beginning of one.

    A long line is not copied again and again; one of more than `longest` bytes is given in parts.
    """

    __slots__ = ("_held", "_longest", "_parts")

    def __init__(self, longest: int = bounds.HELD) -> None:
        self._parts: list[bytes] = []
        self._held = 0
        self._longest = longest

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes."""
        if b"\n" not in chunk:
            self._parts.append(chunk)
            self._held += len(chunk)
            return [self.rest()] if self._held > self._longest else []
        if self._parts:
            chunk = b"".join((*self._parts, chunk))
            self._parts.clear()
        lines = chunk.split(b"\n")
        last = lines.pop()
        self._held = len(last)
        if last:
            self._parts.append(last)
        return lines

    def rest(self) -> bytes:
        """What came after the last line end."""
        rest = b"".join(self._parts)
        self._parts.clear()
        self._held = 0
        return rest


async def batched_chunks(
    answer: aiohttp.ClientResponse, seconds: float
) -> AsyncGenerator[bytes, None]:
    """Chunks that may begin and end anywhere in a line; nothing waits within one."""
    clock = asyncio.get_running_loop().time
    asked = clock()
    async for chunk in answer.content.iter_any():
        flood = clock() - asked < seconds and chunk.endswith(b"\n")
        yield chunk
        if flood:
            await _rest(answer, seconds)
        asked = clock()


async def _rest(answer: aiohttp.ClientResponse, seconds: float) -> None:
    transport = answer.connection.transport if answer.connection else None
    if transport is None:
        return
    # One of TLS reads on into half a megabyte of its own, piece by piece, unless it is forbidden.
    if limit := getattr(transport, "set_read_buffer_limits", None):
        limit(1)
    transport.pause_reading()
    try:
        await asyncio.sleep(seconds)
    finally:
        transport.resume_reading()
