"""Waiting in real time for something to become true; the test's own time-out bounds it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110 - what is waited for is plain state, not an event
        await asyncio.sleep(0.01)
