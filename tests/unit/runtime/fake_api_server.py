"""An API server in memory: the scripted server's objects without sockets, so for jumping time.

`hangs` never answers, not even in the time that the request allows; `refuses` has no connection;
`loses` carries out and then breaks off.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Literal

import msgspec

from mpi_trainer.kube.errors import Status, Unreachable, from_status
from mpi_trainer.kube.requests import Request
from tests.sim.objects import Objects, Refusal
from tests.sim.patches import merged
from tests.sim.server import place

Mood = Literal["well", "hangs", "refuses", "loses"]


class FakeApiServer:
    """What each caller sees of the one store; make one more by `view` for a second replica."""

    def __init__(self, objects: Objects | None = None) -> None:
        self.objects = objects or Objects()
        self.mood: Mood = "well"
        self.delay = 0.0
        self.failures: list[Exception] = []
        self.sent: list[Request] = []

    def view(self) -> FakeApiServer:
        return FakeApiServer(self.objects)

    async def call(self, request: Request, kind: Any = Any) -> Any:
        self.sent.append(request)
        if self.mood == "refuses":
            raise Unreachable(request, "connect", "no connection")
        if self.mood == "hangs":
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(self.delay)
        if self.failures:
            raise self.failures.pop(0)
        try:
            answer = self._process(request)
        except Refusal as refusal:
            status = Status(code=refusal.code, reason=refusal.reason, message=str(refusal))
            raise from_status(request, status) from None
        if self.mood == "loses":
            raise Unreachable(request, "broken", "broken")
        return None if kind is None else msgspec.convert(answer, kind)

    def _process(self, request: Request) -> Any:
        collection, namespace, name, sub = place(request.path)
        given = json.loads(request.body) if request.body else {}
        if request.method == "POST":
            return self.objects.create(collection, namespace, given)
        key = (collection, namespace, name)
        if request.method == "DELETE":
            return self.objects.delete(key, given.get("preconditions", {}).get("uid", ""))
        if request.method == "PATCH":
            return self.objects.write(key, merged(self.objects.get(key), given), sub)
        return self.objects.get(key)
