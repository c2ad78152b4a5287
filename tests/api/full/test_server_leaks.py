"""Two teams at once over REST and gRPC, under load, while one's login ends and another's role is
taken away: nobody is sent an object of the other team, and nobody goes on being told (SC-009).

The server's own login is the administrator's and must not be used; rights are believed for a second
here, where a minute is usual. By hand.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import mpi_trainer.server.rpc  # noqa: F401 - before gRPC itself, whose threads it tames

# isort: split
import aiohttp
import grpc
import msgspec
import pytest

from mpi_trainer.kube.config import load
from mpi_trainer.server.app import Settings
from mpi_trainer.server.callers import PassedOn
from mpi_trainer.server.live.hub import LiveSettings
from mpi_trainer.server.rates import Rate
from mpi_trainer.server.rpc.v1 import mpijobs_pb2 as v1
from mpi_trainer.server.rpc.v1 import mpijobs_pb2_grpc
from mpi_trainer.server.serve import LOOPBACK
from tests.api.clients.test_server import Team, other, ours, theirs
from tests.api.clients.test_server_live import label, short_token
from tests.api.lab import admin, served
from tests.cluster import Kubectl
from tests.rpc import Ports
from tests.rpc import served as serving
from tools.cluster.spec import Spec

__all__ = ["admin", "other", "ours", "served", "theirs"]

SECONDS = 110.0
LOGIN_SECONDS = 10.0
LEEWAY = 60.0
"""for which an API server takes a token of an account after its end, for clocks that differ"""
TAKEN_AFTER = 8.0
KNOWN_WITHIN = 20.0
"""after which nobody may be told anything, also on a busy machine; the pages promise a minute"""
PAUSE = 0.05
EACH = 4
STUB: Any = mpijobs_pb2_grpc.MPIJobsStub

pytestmark = [pytest.mark.full, pytest.mark.timeout(400, func_only=True)]


class Login(msgspec.Struct, frozen=True):
    """Who asks, and how it ends for them before the others: `401`, `403` or not at all."""

    token: str
    own: str
    foreign: str
    name: str
    """of their team's job"""
    ends: str = ""

    def __repr__(self) -> str:
        return f"Login({self.name!r}, ends={self.ends!r})"


class Seen:
    """What callers were sent; all of it is looked at when it comes."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.objects: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.foreign: list[Any] = []
        self.late: list[Any] = []

    def __call__(self, login: Login, namespace: str, how: str) -> None:
        self.objects[how] += 1
        now = time.monotonic() - self.began
        if namespace != login.own:
            self.foreign.append((login.name, namespace, how))
        over = {"401": LOGIN_SECONDS + LEEWAY, "403": TAKEN_AFTER}.get(login.ends)
        if over is not None and now > over + KNOWN_WITHIN:
            self.late.append((login.name, how, now))

    def refused(self, code: str) -> None:
        self.ended[code] += 1


@pytest.fixture
def ports(served: Spec) -> Iterator[Ports]:
    settings = LiveSettings(heartbeat=0.5, review=1.0)
    callers = PassedOn(load(served.kubeconfig))
    with serving(callers, Settings(rate=Rate(10_000, 10_000), live=settings)) as found:
        yield found


def test_two_teams_at_once_get_nothing_of_each_other(
    ports: Ports, ours: Team, theirs: Team
) -> None:
    one, two = ours.admin.namespace, theirs.admin.namespace
    logins = [
        Login(ours.user.token, one, two, "ours"),
        Login(theirs.user.token, two, one, "theirs"),
        Login(ours.viewer.token, one, two, "ours", "403"),
        Login(short_token(theirs.viewer, LOGIN_SECONDS), two, one, "theirs", "401"),
    ]
    stop = threading.Event()

    def change(team: Team, name: str) -> None:
        number = 0
        while not stop.wait(0.1):
            number += 1
            label(team, name, str(number))

    def take_away() -> None:
        if not stop.wait(TAKEN_AFTER - 1):
            Kubectl(ours.admin.spec, one)("delete", "rolebinding", "viewer")

    threads = [
        threading.Thread(target=change, args=(ours, "ours")),
        threading.Thread(target=change, args=(theirs, "theirs")),
        threading.Thread(target=take_away),
    ]
    for thread in threads:
        thread.start()
    try:
        seen = asyncio.run(load_of(ports, logins))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    print(dict(seen.objects), dict(seen.ended), f"{len(seen.foreign)} foreign")
    assert seen.foreign == [] and seen.late == []
    assert all(seen.objects[how] > 2 * EACH for how in ("live", "watch", "REST", "gRPC")), seen
    assert seen.ended["live 401"] == seen.ended["live 403"] == EACH
    assert seen.ended["watch UNAUTHENTICATED"] == seen.ended["watch PERMISSION_DENIED"] == EACH


async def load_of(ports: Ports, logins: list[Login]) -> Seen:
    seen = Seen()
    readers = (live, watch, asks, calls)
    work = [one(ports, login, seen) for login in logins for one in readers for _ in range(EACH)]
    tasks = [asyncio.create_task(one) for one in work]
    await asyncio.sleep(SECONDS)
    for task in tasks:
        task.cancel()
    for found in await asyncio.gather(*tasks, return_exceptions=True):
        if found is not None and not isinstance(found, asyncio.CancelledError):
            raise found
    return seen


async def live(ports: Ports, login: Login, seen: Seen) -> None:
    """The list of jobs, as it changes."""
    path = f"http://{LOOPBACK}:{ports.rest}/api/v1/live/jobs?namespace={login.own}"
    headers = {"Authorization": f"Bearer {login.token}"}
    event = ""
    async with aiohttp.ClientSession() as http, http.get(path, headers=headers) as answer:
        async for raw in answer.content:
            name, _, value = raw.decode().rstrip("\n").partition(": ")
            event = value if name == "event" else event
            if name == "data" and event == "error":
                seen.refused(f"live {json.loads(value)['status']}")
            elif name == "data":
                data = json.loads(value)
                for one in data["items"] if event == "snapshot" else [data]:
                    seen(login, one["namespace"], "live")
    assert login.ends, "a stream ended that should not have"


async def watch(ports: Ports, login: Login, seen: Seen) -> None:
    """Opened anew where it ends for another reason than rights: a busy machine has those."""
    request = v1.WatchMPIJobStatusRequest(namespace=login.own, name=login.name)
    over = {"UNAUTHENTICATED", "PERMISSION_DENIED"}
    async with grpc.aio.insecure_channel(f"{LOOPBACK}:{ports.rpc}") as channel:
        code = ""
        while code not in over:
            try:
                async for one in STUB(channel).WatchMPIJobStatus(request, metadata=_login(login)):
                    seen(login, one.status.namespace, "watch")
            except grpc.aio.AioRpcError as error:
                code = error.code().name
                seen.refused(f"watch {code}")
    assert login.ends, "a right is gone that nobody has taken away"


async def asks(ports: Ports, login: Login, seen: Seen) -> None:
    """One's own list and the other's, by turns."""
    root = f"http://{LOOPBACK}:{ports.rest}/api/v1/namespaces"
    headers = {"Authorization": f"Bearer {login.token}"}
    async with aiohttp.ClientSession(headers=headers) as http:
        while True:
            await asyncio.sleep(PAUSE)
            for space in (login.own, login.foreign):
                async with http.get(f"{root}/{space}/jobs") as answer:
                    found = await answer.json(content_type=None)
                if answer.status != 200:
                    assert space == login.foreign or login.ends, found
                    seen.refused(f"REST {answer.status}")
                for one in found.get("items", ()):
                    seen(login, one["namespace"], "REST")


async def calls(ports: Ports, login: Login, seen: Seen) -> None:
    other = {login.own: login.name, login.foreign: "theirs" if login.name == "ours" else "ours"}
    async with grpc.aio.insecure_channel(f"{LOOPBACK}:{ports.rpc}") as channel:
        while True:
            await asyncio.sleep(PAUSE)
            for space, name in other.items():
                with suppress(grpc.aio.AioRpcError):
                    request = v1.GetMPIJobRequest(namespace=space, name=name)
                    one = await STUB(channel).GetMPIJob(request, metadata=_login(login))
                    seen(login, one.namespace, "gRPC")
                    continue
                seen.refused("gRPC")


def _login(login: Login) -> Any:
    return (("authorization", f"Bearer {login.token}"),)
