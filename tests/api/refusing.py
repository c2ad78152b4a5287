"""A proxy between the controller and the API server that refuses what a test chooses."""

from __future__ import annotations

import json
from collections.abc import Callable

from aiohttp import web

from tests.api.crashing import CrashingProxy
from tools.cluster.spec import Spec


class RefusingProxy(CrashingProxy):
    """`refuses` is asked for every write, by its method and path."""

    def __init__(self, spec: Spec, refuses: Callable[[str, str], bool]) -> None:
        super().__init__(spec, lambda: None)
        self.refuses = refuses
        self.refused: list[str] = []

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        if request.method != "GET" and self.refuses(request.method, request.path):
            self.refused.append(request.path)
            said = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403}
            return web.Response(
                status=403,
                text=json.dumps({**said, "message": "not today"}),
                content_type="application/json",
            )
        return await super()._pass(request)
