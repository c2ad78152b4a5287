"""What a live log costs the server for each of its readers.

    python -m bench.server_streams [N]

Method: a server of this machine's jobs as a process of its own, and N live logs of one job that
says a line every half second; half of the readers never take anything. Memory is what the server's
process holds resident, ten seconds after the last stream began, less that of before. Prints JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import aiohttp

from bench.server import free_port, load, process
from mpi_trainer.api.kinds.mpijob import to_wire
from mpi_trainer.sdk.backends.local.backend import LocalBackend
from mpi_trainer.sdk.job.new import NewJob
from mpi_trainer.server.app import Settings
from mpi_trainer.server.callers import Loopback
from mpi_trainer.server.live.hub import LiveSettings
from mpi_trainer.server.rates import Rate
from mpi_trainer.server.serve import LOOPBACK, listening

JOBS: Final = "/api/v1/namespaces/default/mpijobs"
LOGIN: Final = "bench"
AT_ONCE: Final = 16
SETTLED: Final = 10.0
SCRIPT: Final = "i=0; while :; do echo line $i of many; i=$((i+1)); sleep 0.5; done"
_SERVE: Final = "--serve"

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def main() -> None:
    words = sys.argv[1:]
    if words[:1] == [_SERVE]:
        asyncio.run(_serve(int(words[1])))
    else:
        print(json.dumps(asyncio.run(measured(int(words[0]) if words else 1000))))


async def _serve(port: int) -> None:
    callers = Loopback(LocalBackend(), "bench", token=LOGIN)
    live = LiveSettings(streams=5000, each=5000)
    async with listening(callers, LOOPBACK, port, Settings(rate=Rate(10_000, 10_000), live=live)):
        await asyncio.Event().wait()


async def measured(number: int) -> dict[str, Any]:
    login = {"Authorization": f"Bearer {LOGIN}"}
    async with AsyncExitStack() as stack:
        state = stack.enter_context(tempfile.TemporaryDirectory())
        port, env = free_port(), {**os.environ, "XDG_STATE_HOME": state}
        words = ["-m", "bench.server_streams", _SERVE, str(port)]
        pid = stack.enter_context(process(words, port, env))
        session = aiohttp.ClientSession(f"http://{LOOPBACK}:{port}", headers=login)
        http = await stack.enter_async_context(session)
        made = NewJob("talks", ("sh", "-c", SCRIPT), workers=1, slots=1, image="x")
        async with http.post(JOBS, json=to_wire(made.mpijob())) as answer:
            assert answer.status == 201, await answer.text()
        try:
            return await _held(port, pid, number)
        finally:
            async with http.delete(f"{JOBS}/talks") as answer:
                assert answer.status in (202, 204), await answer.text()


async def _held(port: int, pid: int, number: int) -> dict[str, Any]:
    room = asyncio.Semaphore(AT_ONCE)

    async def opened(_: int) -> Stream:
        async with room:
            return await _open(port)

    first = await _open(port)  # what only the first one costs is not for each
    before = _resident(pid)
    streams = await asyncio.gather(*map(opened, range(number)))
    takers = [asyncio.create_task(_take(reader)) for reader, _ in streams[::2]]
    await asyncio.sleep(SETTLED)
    after = _resident(pid)
    for _, writer in (*streams, first):
        writer.close()
    await asyncio.gather(*takers, return_exceptions=True)
    return {
        "streams": number,
        "resident_mib_before": round(before / 1024, 1),
        "resident_mib_after": round(after / 1024, 1),
        "kib_each": round((after - before) / number, 1),
        "load": load(),
    }


async def _open(port: int) -> Stream:
    """A stream that has begun."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port, limit=4096)
    head = f"GET {JOBS}/talks/logs/live?tail=100 HTTP/1.1\r\nHost: {LOOPBACK}\r\n"
    writer.write(f"{head}Authorization: Bearer {LOGIN}\r\n\r\n".encode())
    status = await reader.readline()
    assert b" 200 " in status, status
    while b"event: lines" not in await reader.readline():
        assert not reader.at_eof(), "the stream ended before its first lines"
    return reader, writer


async def _take(reader: asyncio.StreamReader) -> None:
    while await reader.read(65536):
        pass


def _resident(pid: int) -> int:
    """KiB."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1])


if __name__ == "__main__":
    main()
