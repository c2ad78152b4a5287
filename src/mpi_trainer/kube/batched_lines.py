"""A stream's lines as they come, but those of a flood in gulps.

Taking each event of a flood off its connection costs several times what decoding it does: many at
once share that cost. What comes alone is given at once; in a flood each line waits in the system's
buffers, for as long as the request allows and no longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import aiohttp


async def gulps(answer: aiohttp.ClientResponse, seconds: float) -> AsyncGenerator[bytes, None]:
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
    # One of TLS reads on into half a megabyte of its own, piece by piece, unless told not to.
    if limit := getattr(transport, "set_read_buffer_limits", None):
        limit(1)
    transport.pause_reading()
    try:
        await asyncio.sleep(seconds)
    finally:
        transport.resume_reading()
