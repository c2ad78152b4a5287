"""The client against a server that misbehaves: what is repeated, what is not, what is said."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import (
    AlreadyExists,
    Conflict,
    Garbled,
    KubeError,
    NotFound,
    PastDeadline,
    ServerFault,
    TooManyRequests,
    Unreachable,
)
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.resources import CONFIGMAPS, MPIJOBS
from tests.sim.faults import Fault
from tests.sim.server import Server

CM = {"metadata": {"name": "a", "namespace": "n"}, "data": {"k": "v"}}
GET = requests.get(CONFIGMAPS, "n", "a")
CREATE = requests.create(CONFIGMAPS, "n", CM)


def play(
    script: Callable[[Server, Client], Awaitable[None]], *faults: Fault, **options: Any
) -> None:
    """Run a script with a server that has these faults and a client of it."""

    async def run() -> None:
        async with Server(faults) as server, Client(server.config, **options) as client:
            async with asyncio.timeout(20):
                await script(server, client)

    asyncio.run(run())


def quickly(request: Request) -> Request:
    return msgspec.structs.replace(request, timeout=0.3)


def test_objects_are_made_read_changed_and_deleted() -> None:
    async def script(server: Server, client: Client) -> None:
        made = await client.call(CREATE)
        assert await client.call(GET) == made
        patch = requests.patch(CONFIGMAPS, "n", "a", {"data": {"k": None, "x": "1"}}, "merge")
        assert (await client.call(patch))["data"] == {"x": "1"}
        with pytest.raises(AlreadyExists):
            await client.call(CREATE)
        with pytest.raises(Conflict):
            await client.call(requests.delete(CONFIGMAPS, "n", "a", uid="another"))
        await client.call(requests.delete(CONFIGMAPS, "n", "a", uid=made["metadata"]["uid"]), None)
        with pytest.raises(NotFound) as caught:
            await client.call(GET)
        assert caught.value.reason == "NotFound"

    play(script)


@pytest.mark.parametrize("request_", [GET, CREATE])
def test_a_busy_server_is_asked_again_when_it_said(request_: Request) -> None:
    async def script(server: Server, client: Client) -> None:
        if not request_.writes:
            server.put(CONFIGMAPS, CM)
        began = time.monotonic()
        await client.call(request_)
        assert time.monotonic() - began >= 1.0
        assert len(server.requests) == 2
        assert len(server.objects.history) == 1

    play(script, Fault("answer", code=429, reason="TooManyRequests", retry_after="1"))


def test_a_wish_to_wait_for_long_is_the_callers_to_grant() -> None:
    async def script(server: Server, client: Client) -> None:
        with pytest.raises(TooManyRequests) as caught:
            await client.call(GET)
        assert caught.value.retry_after == 600
        assert len(server.requests) == 1

    play(script, Fault("answer", code=429, retry_after="600"))


@pytest.mark.parametrize("kind", ["answer", "page", "drop"])
def test_a_read_is_repeated_after_a_fault(kind: Any) -> None:
    async def script(server: Server, client: Client) -> None:
        server.put(CONFIGMAPS, CM)
        assert (await client.call(GET))["data"] == {"k": "v"}

    play(script, Fault(kind, code=503, times=2))


@pytest.mark.parametrize("kind", ["answer", "page", "drop", "lose"])
def test_a_write_is_sent_once_whatever_happens(kind: Any) -> None:
    async def script(server: Server, client: Client) -> None:
        with pytest.raises(KubeError) as caught:
            await client.call(CREATE)
        assert len(server.sent("POST")) == 1
        assert isinstance(caught.value, ServerFault | Unreachable)
        assert not isinstance(caught.value, Unreachable) or caught.value.sent
        assert len(server.objects.history) == (1 if kind == "lose" else 0)

    play(script, Fault(kind, code=503, retry_after="0", times=9))


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_write_over_a_used_connection_is_sent_once_too(method: str) -> None:
    """Left to itself the HTTP library repeats these on a connection that was used before."""

    async def script(server: Server, client: Client) -> None:
        made = await client.call(CREATE)
        changed = {**made, "data": {"k": "w"}}
        writes = {
            "PUT": requests.replace(CONFIGMAPS, "n", "a", changed),
            "DELETE": requests.delete(CONFIGMAPS, "n", "a"),
        }
        with pytest.raises(Unreachable) as caught:
            await client.call(writes[method])
        assert caught.value.sent
        assert len(server.sent(method)) == 1

    play(script, Fault("lose", method=method))


def test_a_proxys_page_is_told_in_one_line() -> None:
    async def script(server: Server, client: Client) -> None:
        with pytest.raises(ServerFault, match="Bad Gateway"):
            await client.call(CREATE)

    play(script, Fault("page", code=502))


def test_giving_up_after_as_many_tries_as_asked() -> None:
    async def script(server: Server, client: Client) -> None:
        with pytest.raises(ServerFault):
            await client.call(msgspec.structs.replace(GET, tries=3))
        assert len(server.requests) == 3

    play(script, Fault("answer", code=500, retry_after="0", times=99))


@pytest.mark.parametrize("request_", [GET, CREATE])
def test_a_server_that_never_answers_costs_the_time_out_and_no_more(request_: Request) -> None:
    async def script(server: Server, client: Client) -> None:
        began = time.monotonic()
        with pytest.raises(Unreachable, match="in time") as caught:
            await client.call(quickly(request_))
        assert 0.25 < time.monotonic() - began < 2
        assert (caught.value.what, caught.value.sent) == ("time-out", True)

    play(script, Fault("hang", times=9))


def test_a_refused_connection_was_not_sent() -> None:
    async def run() -> None:
        async with Server() as server:
            config = server.config
        async with Client(config) as client:
            with pytest.raises(Unreachable, match="refused") as caught:
                await client.call(CREATE)
        assert (caught.value.what, caught.value.sent) == ("connect", False)

    asyncio.run(run())


def test_no_write_is_sent_past_the_deadline_but_reads_are() -> None:
    """CTL-14: a leader whose lease is over writes nothing."""

    async def script(server: Server, client: Client) -> None:
        server.put(CONFIGMAPS, CM)
        await client.call(GET)
        for write in (CREATE, requests.delete(CONFIGMAPS, "n", "a")):
            with pytest.raises(PastDeadline):
                await client.call(write)
        assert [one.method for one in server.requests] == ["GET"]
        await client.until(None).call(requests.delete(CONFIGMAPS, "n", "a"), None)

    play(script, deadline=lambda: 0.0)


def test_no_write_is_waited_for_past_the_deadline() -> None:
    async def script(server: Server, client: Client) -> None:
        began = time.monotonic()
        with pytest.raises(Unreachable):
            await client.call(CREATE)
        assert time.monotonic() - began < 2

    play(script, Fault("hang"), deadline=lambda: 0.4)


def test_a_busy_server_is_not_asked_again_past_the_deadline() -> None:
    ends: list[float] = []

    def left() -> float:
        if not ends:
            ends.append(time.monotonic() + 0.9)
        return ends[0] - time.monotonic()

    async def script(server: Server, client: Client) -> None:
        with pytest.raises((PastDeadline, TooManyRequests)):
            await client.call(CREATE)
        assert len(server.requests) == 1

    fault = Fault("answer", code=429, retry_after="1")
    play(script, fault, deadline=left)


def test_every_try_is_observed_by_its_route() -> None:
    seen: list[tuple[str, str, int]] = []

    async def script(server: Server, client: Client) -> None:
        server.put(CONFIGMAPS, CM)
        await client.call(GET)

    play(
        script,
        Fault("answer", code=500, retry_after="0"),
        Fault("drop"),
        observe=lambda method, route, code, _: seen.append((method, route, code)),
    )
    route = "/api/v1/namespaces/{namespace}/configmaps/{name}"
    assert seen[0] == ("GET", route, 500)
    assert seen[-1] == ("GET", route, 200)
    assert {one[1] for one in seen} == {route}


def test_an_answer_of_another_shape_is_garbled() -> None:
    class Number(msgspec.Struct):
        data: int

    async def script(server: Server, client: Client) -> None:
        server.put(CONFIGMAPS, CM)
        with pytest.raises(Garbled, match=r"\$\.data"):
            await client.call(GET, Number)

    play(script)


def test_calls_beyond_the_room_wait_for_their_turn() -> None:
    async def script(server: Server, client: Client) -> None:
        names = [f"c{i}" for i in range(40)]
        made = [requests.create(CONFIGMAPS, "n", {"metadata": {"name": name}}) for name in names]
        await asyncio.gather(*(client.call(one, None) for one in made))
        assert len(server.objects.objects) == 40

    play(script, Fault("late", seconds=0.05, times=40), parallel=4)


def test_status_is_a_part_of_its_own() -> None:
    async def script(server: Server, client: Client) -> None:
        server.put(MPIJOBS, {"metadata": {"name": "j", "namespace": "n"}, "spec": {"x": 1}})
        body = {"status": {"a": 1}, "spec": {"x": 2}}
        request = requests.patch(MPIJOBS, "n", "j", body, "merge", sub="status")
        new = await client.call(request)
        assert (new["spec"], new["status"]) == ({"x": 1}, {"a": 1})
        new = await client.call(requests.patch(MPIJOBS, "n", "j", body, "merge"))
        assert (new["spec"], new["metadata"]["generation"]) == ({"x": 2}, 2)

    play(script)
