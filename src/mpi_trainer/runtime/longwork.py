"""Long work on what users write, beside the event loop.

One piece at a time: however many large objects come at once, the loop shares the interpreter with
one thread only, and is late by no more than that thread's turn (5 ms). Danger: the work must be
pure, since everything else goes on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from mpi_trainer.api import bounds

P = ParamSpec("P")
T = TypeVar("T")


class LongWork:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def on(self, size: int, act: Callable[P, T], *args: P.args, **names: P.kwargs) -> T:
        """`act`, which reads about `size` bytes: at once where they are few."""
        if size <= bounds.SHORT_TEXT:
            return act(*args, **names)
        async with self._turn:
            return await asyncio.to_thread(act, *args, **names)
