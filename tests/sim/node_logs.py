"""A node's container logs behind the scripted API server: they grow, break, rotate and restart.

As a kubelet: `sinceTime` counts in whole seconds, only the newest file is served, and of earlier
containers only the last one's log.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web

from mpi_trainer.api.kinds.labels import LABEL_JOBSET
from mpi_trainer.kube.resources import MPIJOBS, PODS, TRAINJOBS, Resource
from tests.sim.objects import Object
from tests.sim.server import Server, key_of

START = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
SPACE = "here"


class NodeLog:
    """One container's log."""

    def __init__(self) -> None:
        self.lines: list[tuple[datetime, bytes]] = []
        self.earlier: list[tuple[datetime, bytes]] = []
        self.ended = False
        self.cuts_after: list[int] = []
        self.reads = 0
        self._changed = asyncio.Condition()

    async def write(self, *texts: str, seconds: float = 0.1) -> None:
        """Each line a little later than the one before."""
        async with self._changed:
            for text in texts:
                last = self.lines[-1][0] if self.lines else START
                self.lines.append((last + timedelta(seconds=seconds), text.encode()))
            self._changed.notify_all()

    async def rotate(self) -> None:
        """The file is full and put away; another one begins."""
        async with self._changed:
            self.lines = []
            self._changed.notify_all()

    async def end(self) -> None:
        async with self._changed:
            self.ended = True
            self._changed.notify_all()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.reads += 1
        query = request.query
        since = datetime.fromisoformat(query["sinceTime"]) if "sinceTime" in query else START
        follows, previous = query.get("follow") == "true", query.get("previous") == "true"
        answer = web.StreamResponse()
        await answer.prepare(request)
        cut = self.cuts_after.pop(0) if self.cuts_after and follows else None
        given, source = 0, self.earlier if previous else self.lines
        while True:
            for time, text in source[given:]:
                given += 1
                if time < since:
                    continue
                stamp = time.strftime("%Y-%m-%dT%H:%M:%S.%f") + "789Z"
                await answer.write(stamp.encode() + b" " + text + b"\n")
                if cut is not None and given >= cut:
                    await asyncio.sleep(0.05)  # what was sent arrives
                    if request.transport:
                        request.transport.abort()
                    return answer
            if not follows or self.ended or source is not self.lines:
                return answer
            async with self._changed:
                if given == len(source) and not self.ended and source is self.lines:
                    await self._changed.wait()


class Node(Server):
    """An API server with one node behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.logs: dict[str, NodeLog] = {}

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if not request.path.endswith("/log"):
            return await super()._handle(request)
        return await self.logs[request.path.split("/")[-2]].serve(request)

    def _keep(self, resource: Resource, obj: Object) -> None:
        """The object with its status, which is written apart."""
        self.put(resource, obj)
        meta = obj["metadata"]
        self.objects.write(key_of(resource, meta["namespace"], meta["name"]), obj, "status")

    def job(
        self, state: str = "", notes: dict[str, str] | None = None, name: str = "pi", held: str = ""
    ) -> None:
        """The job as its controller left it; the finalizer `held` keeps it."""
        conditions = [{"type": state, "status": "True"}] if state else []
        meta = {"name": name, "namespace": SPACE, "annotations": notes or {}}
        self._keep(
            MPIJOBS,
            {
                "apiVersion": "kubeflow.org/v2beta1",
                "kind": "MPIJob",
                "metadata": meta | ({"finalizers": [held]} if held else {}),
                "spec": {"mpiReplicaSpecs": {}},
                "status": {"conditions": conditions},
            },
        )

    def nodes(self, *names: str, state: str = "") -> None:
        """A TrainJob without a launcher, whose nodes all run, or which has ended so."""
        conditions = [{"type": state, "status": "True"}] if state else []
        counts = {"name": "node", "ready": len(names), "active": len(names)}
        self._keep(
            TRAINJOBS,
            {
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": "TrainJob",
                "metadata": {"name": "pi", "namespace": SPACE},
                "spec": {"runtimeRef": {"name": "torch-distributed"}},
                "status": {"jobsStatus": [counts], "conditions": conditions},
            },
        )
        for name in names:
            self.pod(name, "Succeeded" if state else "Running", label=LABEL_JOBSET)

    def pod(
        self,
        name: str,
        phase: str,
        *,
        attempt: int = 1,
        restarts: int = 0,
        label: str = "training.kubeflow.org/job-name",
    ) -> NodeLog:
        """A launcher."""
        states: dict[str, Any] = {
            "Pending": {"waiting": {"reason": "ContainerCreating"}},
            "Running": {"running": {}},
        }
        state = states.get(phase, {"terminated": {"exitCode": int(phase == "Failed")}})
        labels = {
            label: "pi",
            "training.kubeflow.org/job-role": "launcher",
        }
        notes = {"mpi-trainer.opendatahub.io/attempt": str(attempt)}
        status = {"name": "mpi", "restartCount": restarts, "state": state}
        self._keep(
            PODS,
            {
                "metadata": {
                    "name": name,
                    "namespace": SPACE,
                    "labels": labels,
                    "annotations": notes,
                },
                "spec": {"containers": [{"name": "mpi"}]},
                "status": {"phase": phase, "containerStatuses": [status]},
            },
        )
        return self.logs.setdefault(name, NodeLog())
