"""A stream's lines as they come, but those of a flood in gulps.

Taking each event of a flood off its connection costs several times what decoding it does: many at
once share that cost. What comes alone is given at once; in a flood each line is late by a twentieth
of a second at most, and waits in the system's buffers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

import aiohttp

DENSE: Final = 0.005
REST: Final = 0.05


async def gulps(answer: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    """Chunks that may begin and end anywhere in a line; nothing waits within one."""
    clock = asyncio.get_running_loop().time
    asked = clock()
    async for chunk in answer.content.iter_any():
        flood = clock() - asked < DENSE and chunk.endswith(b"\n")
        yield chunk
        if flood:
            await _rest(answer)
        asked = clock()


async def _rest(answer: aiohttp.ClientResponse) -> None:
    transport = answer.connection.transport if answer.connection else None
    if transport is None:
        return
    transport.pause_reading()
    try:
        await asyncio.sleep(REST)
    finally:
        transport.resume_reading()
