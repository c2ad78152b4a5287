"""The server is killed, twice, under a hundred live readers of REST and gRPC, while jobs change and
write: each comes back by itself, misses nothing and is told nothing twice. By hand.

Readers are a quarter each: the list of jobs, one job, a job's log (server-sent events), and by gRPC
a job's log and its status.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mpi_trainer.server.rpc  # noqa: F401 - before gRPC itself, whose threads it tames

# isort: split
import aiohttp
import grpc
import pytest

from mpi_trainer.server.rpc.v1 import mpijobs_pb2 as v1
from mpi_trainer.server.rpc.v1 import mpijobs_pb2_grpc
from mpi_trainer.server.serve import LOOPBACK
from tests.api.admin import JOBS, Admin
from tests.api.clients.test_server import Team, ours
from tests.api.clients.test_server_logs import kubelet, logs
from tests.api.kubelet import Kubelet, is_launcher
from tests.api.kubelet_logs import KubeletLogs
from tests.api.lab import admin, controller, served, until
from tests.api.running import Controller, free_port
from tests.both_ways import manifest
from tools.cluster.spec import Spec

__all__ = ["admin", "controller", "kubelet", "logs", "ours", "served"]

READERS = int(os.environ.get("READERS", "100"))
"""100 is all that two callers may have"""
CHANGES = 60
KILLED = (20, 40)
"""after so many changes"""
PATIENCE = 400.0
STUB: Any = mpijobs_pb2_grpc.MPIJobsStub

pytestmark = [pytest.mark.full, pytest.mark.timeout(1500, func_only=True)]


class Reader:
    """Comes back until it has heard the end, or is cancelled; what it heard on each visit."""

    def __init__(self, token: str, namespace: str) -> None:
        self.token = token
        self.namespace = namespace
        self.visits: list[list[Any]] = []

    @property
    def last(self) -> Any:
        return next((visit[-1] for visit in reversed(self.visits) if visit), None)

    async def read(self, rest: int, rpc: int) -> None:
        while True:
            self.visits.append([])
            with contextlib.suppress(aiohttp.ClientError, grpc.aio.AioRpcError, ConnectionError):
                if await self.visit(rest, rpc):
                    return
            await asyncio.sleep(0.2)  # until the next try, as clients do

    async def visit(self, rest: int, rpc: int) -> bool:
        """Whether that was the end."""
        raise NotImplementedError


class Events(Reader):
    """Server-sent events."""

    path = ""
    position = ""

    async def visit(self, rest: int, rpc: int) -> bool:
        headers = {"Authorization": f"Bearer {self.token}", "Last-Event-ID": self.position}
        forever = aiohttp.ClientTimeout(total=None)
        async with (
            aiohttp.ClientSession(timeout=forever, read_bufsize=2**20) as http,
            http.get(f"http://{LOOPBACK}:{rest}{self.path}", headers=headers) as answer,
        ):
            if answer.status in (503, 504):  # a machine too busy to answer in time
                return False
            assert answer.status == 200, await answer.text()
            fields: dict[str, str] = {}
            async for raw in answer.content:
                name, _, value = raw.decode().rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                elif "event" in fields:
                    self.position = fields.get("id", self.position)
                    if self.heard(fields["event"], json.loads(fields["data"])):
                        return True
                    fields = {}
        return False

    def heard(self, event: str, data: Any) -> bool:
        raise NotImplementedError


class Versions(Events):
    """Of the job `noted`."""

    def heard(self, event: str, data: Any) -> bool:
        items = data["items"] if event == "snapshot" else [data] if event == "job" else []
        for one in items:
            if one["name"] == "noted":
                seen = one.get("resourceVersion") or one["manifest"]["metadata"]["resourceVersion"]
                self.visits[-1].append(seen)
        return False


class ListReader(Versions):
    @property
    def path(self) -> str:  # type: ignore[override]
        return f"/api/v1/live/jobs?namespace={self.namespace}"


class JobReader(Versions):
    @property
    def path(self) -> str:  # type: ignore[override]
        return f"/api/v1/namespaces/{self.namespace}/mpijobs/noted/live"


class LogReader(Events):
    @property
    def path(self) -> str:  # type: ignore[override]
        return f"/api/v1/namespaces/{self.namespace}/mpijobs/ours/logs/live?tail=10000"

    def heard(self, event: str, data: Any) -> bool:
        if event == "lines":
            self.visits[-1] += [line["text"] for line in data["items"]]
        return event == "end"


class Calls(Reader):
    @contextlib.asynccontextmanager
    async def stub(self, rpc: int) -> Any:
        own = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(f"{LOOPBACK}:{rpc}", options=own) as channel:
            yield STUB(channel)

    @property
    def login(self) -> Any:
        return (("authorization", f"Bearer {self.token}"),)


class LogCalls(Calls):
    """Goes on from the time of the last line, less the lines of that time that it has."""

    def __init__(self, token: str, namespace: str) -> None:
        super().__init__(token, namespace)
        self._time: Any = None
        self._of_it = 0

    async def visit(self, rest: int, rpc: int) -> bool:
        known = self._of_it
        request = v1.GetMPIJobLogsRequest(
            namespace=self.namespace, name="ours", follow=True, since=self._time
        )
        async with self.stub(rpc) as stub:
            async for answer in stub.GetMPIJobLogs(request, metadata=self.login):
                for line in answer.lines:
                    if known and line.time == self._time:
                        known -= 1
                        continue
                    known = 0
                    self._of_it = 1 + (self._of_it if line.time == self._time else 0)
                    self._time = line.time
                    self.visits[-1].append(line.text)
        return True


class StatusCalls(Calls):
    async def visit(self, rest: int, rpc: int) -> bool:
        request = v1.WatchMPIJobStatusRequest(namespace=self.namespace, name="ours")
        async with self.stub(rpc) as stub:
            async for answer in stub.WatchMPIJobStatus(request, metadata=self.login):
                self.visits[-1].append(v1.JobState.Name(answer.status.state))
        return True


@contextlib.contextmanager
def server(spec: Spec, rest: int, rpc: int) -> Iterator[subprocess.Popen[bytes]]:
    options = ("--kubeconfig", str(spec.kubeconfig), "--port", str(rest), "--grpc-port", str(rpc))
    words = [sys.executable, "-m", "mpi_trainer.server", *options]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as made:
        try:
            yield made
        finally:
            made.kill()


def test_a_hundred_readers_miss_and_double_nothing(
    served: Spec, ours: Team, controller: Controller, kubelet: Kubelet, logs: KubeletLogs
) -> None:
    until(ours.admin, "Running", "ours")
    ours.admin.create(f"{JOBS}/mpijobs", manifest("noted"))
    until(ours.admin, "Suspended", "noted")
    kinds = (ListReader, JobReader, LogReader, LogCalls, ListReader, JobReader, LogReader)
    chosen = [(*kinds, StatusCalls)[n % 8] for n in range(READERS)]
    tokens = (ours.user.token, ours.viewer.token)
    # By halves, not by turns: each kind has readers of both.
    readers = [
        kind(tokens[n * 2 // READERS], ours.admin.namespace) for n, kind in enumerate(chosen)
    ]
    versions = asyncio.run(story(served, ours.admin, kubelet, logs, readers))
    said = [f"line {n}" for n in range(CHANGES * 2 + 10)]
    for reader in readers:
        heard = [one for visit in reader.visits for one in visit]
        again = [visit for visit in reader.visits if visit]
        name = type(reader).__name__
        if isinstance(reader, Versions):
            for visit in again:
                begin = versions.index(visit[0])
                assert visit == versions[begin : begin + len(visit)], (name, visit, versions)
            assert heard[-1] == versions[-1], name
        elif isinstance(reader, LogReader | LogCalls):
            assert heard == said, (name, reader.visits)
        else:
            assert heard[-1] == "JOB_STATE_SUCCEEDED", heard
            assert heard.count("JOB_STATE_SUCCEEDED") == 1, heard
    visits = sum(len([visit for visit in one.visits if visit]) for one in readers)
    print(f"{len(readers)} readers, {visits} visits that were told something")
    assert visits > 2 * len(readers)


async def story(
    spec: Spec, admin: Admin, kubelet: Kubelet, logs: KubeletLogs, readers: Sequence[Reader]
) -> list[str]:
    """The versions that `noted` had, in their order."""
    first = admin.get(f"{JOBS}/mpijobs/noted") or {}
    versions = [str(first["metadata"]["resourceVersion"])]
    logs.say(*(f"line {n}" for n in range(10)))
    rest, rpc = free_port(), free_port()
    tasks: list[asyncio.Task[None]] = []
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(server(spec, rest, rpc))
        tasks += [asyncio.create_task(one.read(rest, rpc)) for one in readers]
        try:
            await told(tasks, readers, lambda one: one.last)
            for n in range(CHANGES):
                if n in KILLED:
                    # Each has been told something by this server.
                    await told(tasks, readers, lambda one: one.visits[-1])
                    running.kill()
                    running = stack.enter_context(server(spec, rest, rpc))
                change = {"metadata": {"labels": {"n": f"n{n}"}}}
                made = await asyncio.to_thread(admin.patch, f"{JOBS}/mpijobs/noted", change)
                versions.append(str(made["metadata"]["resourceVersion"]))
                logs.say(*(f"line {10 + 2 * n + m}" for m in range(2)))
                await asyncio.sleep(0.1)  # the pace of changes
            await told(tasks, readers, lambda one: one.visits[-1])
            logs.end()
            kubelet.finish = lambda pod: 0 if is_launcher(pod) else None
            watching = [one for one in readers if isinstance(one, Versions)]
            await told(tasks, watching, lambda one: one.last == versions[-1])
            ending = [
                task
                for task, one in zip(tasks, readers, strict=True)
                if not isinstance(one, Versions)
            ]
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*ending)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return versions


async def told(
    tasks: Sequence[asyncio.Task[None]], readers: Sequence[Reader], so: Callable[[Reader], Any]
) -> None:
    """Until it is so for each."""
    deadline = time.monotonic() + PATIENCE
    while waiting := [one for one in readers if not so(one)]:
        kinds = Counter(type(one).__name__ for one in waiting)
        assert time.monotonic() < deadline, (kinds, [one.visits for one in waiting][:4])
        for task in tasks:
            if task.done() and not task.cancelled() and task.exception():
                task.result()
        await asyncio.sleep(0.1)  # a look; there is a deadline
