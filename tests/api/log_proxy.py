"""A proxy between the controller and the API server that answers for kubelets where there are none.

Only a container's log is its own; all else is passed on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import web

from tests.api.crashing import CrashingProxy
from tools.cluster.spec import Spec

SAID = "epoch 3\ntoken=abcdef123456\nValueError: no such column\n"
AGENT = "mpi-agent| 1794762138 pi-launcher"
STUCK = (
    f"epoch 3 of 9\n{AGENT} quiet form=1 seconds=372 ranks=4 groups=2\n"
    f"{AGENT} place ranks=0-1,3 on=pi-worker-0 idle=0 same=1 ending=0 mpi=1 "
    "frames=/app/train.py:41:step calls=comm.Allreduce\n"
    f"{AGENT} place ranks=2 on=pi-worker-1 idle=0 same=1 ending=0 mpi=1 "
    "frames=/app/train.py:37:step calls=comm.recv\n"
)
"""of a job whose ranks wait for each other"""
STUCK_TEXT = (
    "seems to be stuck: no output and no progress for 6m12s: "
    "ranks 0-1,3 wait in MPI_Allreduce (train.py:41); "
    "rank 2 on pi-worker-1 has not come there: waits in MPI_Recv (train.py:37)"
)
WHEN = "2026-11-18T12:00:00.000000000Z"


def _stamped(line: str) -> str:
    """Tests that count on times say lines with their own."""
    return line if line[:2] == "20" and line[10:11] == "T" else f"{WHEN} {line}"


class LogProxy(CrashingProxy):
    """Answers for the kubelet where a log is asked for."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec, lambda: None)
        self.asked: list[dict[str, str]] = []
        self.says: Callable[[str], str | None] = lambda pod: SAID

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        if not request.path.endswith("/log"):
            return await super()._pass(request)
        self.asked.append(dict(request.query))
        said = self.says(request.path.split("/")[-2])
        if said is None:
            await asyncio.sleep(60)
        text = said or ""
        if request.query.get("timestamps") == "true":
            text = "".join(f"{_stamped(line)}\n" for line in text.splitlines())
        return web.Response(text=text)
