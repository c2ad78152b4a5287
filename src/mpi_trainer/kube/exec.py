"""A command in a running container, over a websocket (`v5.channel.k8s.io`, or `v4` on servers
before 1.30).

`run` is for short commands whose output fits in memory; `session` for what goes back and forth.
The command is a list of words that no shell of ours ever sees. Danger: leaving a session closes
the connection, which does not end the process in the container.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from mpi_trainer.api.yaml import typed
from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import Garbled, Status, Unreachable, from_status
from mpi_trainer.kube.requests import Request

if TYPE_CHECKING:
    import aiohttp

    from mpi_trainer.kube.client import Client

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
MOST_OUTPUT: Final = 16 << 20
"""bytes of a command that `run` runs"""
_STDIN, _STDOUT, _STDERR, _END, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255


class Done(msgspec.Struct, frozen=True):
    """How a command ended."""

    code: int
    stdout: bytes = b""
    stderr: bytes = b""


class Chunk(msgspec.Struct, frozen=True):
    """A piece of output."""

    stream: Literal["stdout", "stderr"]
    data: bytes


class Session:
    """A running command. Read `output` to its end, then `code` is known."""

    def __init__(self, request: Request, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._request = request
        self._socket = socket
        self.code: int | None = None

    async def output(self) -> AsyncGenerator[Chunk, None]:
        """What the command writes, until it ends; an ApiError if it could not be run."""
        from aiohttp import WSMsgType

        async for message in self._socket:
            if message.type is not WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel == _END:
                self.code = exit_code(self._request, data)
            elif channel in (_STDOUT, _STDERR) and data:
                yield Chunk("stdout" if channel == _STDOUT else "stderr", data)
        if self.code is None:
            why = "the connection ended before the command did"
            raise Unreachable(self._request, "broken", why)

    async def write(self, data: bytes) -> None:
        """Give it input."""
        await self._socket.send_bytes(bytes([_STDIN]) + data)

    async def end_input(self) -> None:
        """There is no more input. Servers before 1.30 cannot be told."""
        if self._socket.protocol == PROTOCOLS[0]:
            await self._socket.send_bytes(bytes([_CLOSE, _STDIN]))

    async def resize(self, width: int, height: int) -> None:
        """Tell its terminal the new size."""
        size = msgspec.json.encode({"Width": width, "Height": height})
        await self._socket.send_bytes(bytes([_RESIZE]) + size)


@asynccontextmanager
async def session(client: Client, request: Request) -> AsyncIterator[Session]:
    """Start what `requests.execute` describes."""
    async with client.connect(request, PROTOCOLS) as socket:
        yield Session(request, socket)


async def run(  # noqa: PLR0913 - which container, what, and how long
    client: Client,
    namespace: str,
    pod: str,
    command: Sequence[str],
    *,
    container: str = "",
    stdin: bytes = b"",
    seconds: float = 60.0,
) -> Done:
    """Run a command to its end; `Unreachable` if that takes longer than `seconds`, `Garbled` if it
    prints more than `MOST_OUTPUT`: whoever made the image chose what its programs do."""
    request = requests.execute(namespace, pod, command, container, stdin=bool(stdin))
    parts: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
    size = 0
    try:
        async with asyncio.timeout(seconds), session(client, request) as running:
            if stdin:
                await running.write(stdin)
                await running.end_input()
            async for chunk in running.output():
                parts[chunk.stream].append(chunk.data)
                size += len(chunk.data)
                if size > MOST_OUTPUT:
                    why = f"{command[0]} printed more than {MOST_OUTPUT >> 20} MiB"
                    raise Garbled(request, why)
    except TimeoutError:
        why = f"{command[0]} did not end in {seconds:g} s"
        raise Unreachable(request, "time-out", why) from None
    code = running.code
    assert code is not None
    return Done(code, b"".join(parts["stdout"]), b"".join(parts["stderr"]))


def exit_code(request: Request, data: bytes) -> int:
    """The command's exit code from the Status that ends it; an ApiError if it never ran."""
    status = typed.decode(data, _Ended)
    if status.status == "Success":
        return 0
    causes = (status.details or {}).get("causes") or ()
    for cause in causes:
        if status.reason == "NonZeroExitCode" and cause.get("reason") == "ExitCode":
            return int(cause["message"])
    code = status.code or 500
    raise from_status(request, Status(code, status.reason, status.message, status.details))


class _Ended(Status, frozen=True, rename="camel"):
    status: str = ""
