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
        return web.Response(text=said or "")
