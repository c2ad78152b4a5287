"""A container's log: its end as text, or line by line as it grows.

Following ends when the container does; a connection that breaks is `Unreachable`, and how far
one got is known from the timestamps if they were asked for.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from mpi_trainer.kube import requests
from mpi_trainer.kube.requests import LogOptions

if TYPE_CHECKING:
    from mpi_trainer.kube.client import Client

_ALL = LogOptions()


async def tail(client: Client, namespace: str, pod: str, options: LogOptions = _ALL) -> bytes:
    """The log, or the part that `options` ask for, in one piece."""
    return await client.fetch(requests.logs(namespace, pod, options))


async def follow(
    client: Client, namespace: str, pod: str, options: LogOptions = _ALL
) -> AsyncGenerator[bytes, None]:
    """The log's lines, without their ends; with `options.follow`, until the container ends."""
    async with aclosing(client.lines(requests.logs(namespace, pod, options))) as lines:
        async for line in lines:
            yield line
