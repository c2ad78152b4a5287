"""A watch against a server that misbehaves: it never hangs and never hides why it ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Forbidden, Gone, ServerFault, Unreachable
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.resources import CONFIGMAPS
from mpi_trainer.kube.watch import Added, Bookmark, Deleted, Modified, Unreadable, watch
from tests.sim.faults import Fault
from tests.sim.server import Server


class Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    resource_version: str = ""


class Thing(msgspec.Struct, frozen=True):
    metadata: Meta
    data: dict[str, str] = {}


WATCH = requests.watch(CONFIGMAPS, "n", resource_version="100", seconds=1)


def put(server: Server, name: str, **data: Any) -> None:
    server.put(CONFIGMAPS, {"metadata": {"name": name, "namespace": "n"}, "data": data})


async def told(client: Client, request: Request = WATCH) -> list[str]:
    """The events of a whole watch in short; bookmarks left out."""
    events = []
    async for event in watch(client, request, Thing):
        if not isinstance(event, Bookmark):
            name = (
                event.metadata.name if isinstance(event, Unreadable) else event.object.metadata.name
            )
            events.append(f"{type(event).__name__} {name}")
    return events


def play(
    script: Callable[[Server, Client], Awaitable[None]], *faults: Fault, bookmarks: float = 0.2
) -> None:
    async def run() -> None:
        async with Server(faults, bookmarks=bookmarks) as server, Client(server.config) as client:
            put(server, "a")
            put(server, "b")
            put(server, "a", k="v")
            server.remove(CONFIGMAPS, "n", "b")
            async with asyncio.timeout(20):
                await script(server, client)

    asyncio.run(run())


def test_events_come_in_order_and_the_server_ends_the_watch() -> None:
    async def script(server: Server, client: Client) -> None:
        assert await told(client) == ["Added a", "Added b", "Modified a", "Deleted b"]

    play(script)


def test_bookmarks_carry_the_version() -> None:
    async def script(server: Server, client: Client) -> None:
        marks = [
            event.resource_version
            async for event in watch(client, WATCH, Thing)
            if isinstance(event, Bookmark)
        ]
        assert set(marks) == {"104"}

    play(script)


def test_a_version_too_old_is_gone_in_the_stream_and_as_an_answer() -> None:
    async def script(server: Server, client: Client) -> None:
        server.objects.compact()
        with pytest.raises(Gone, match="list again"):
            await told(client)
        server.faults.append(Fault("answer", code=410, reason="Expired"))
        with pytest.raises(Gone):
            await told(client)
        server.faults.append(Fault("gone"))
        with pytest.raises(Gone):
            await told(client, requests.watch(CONFIGMAPS, seconds=1))

    play(script)


def test_a_silent_connection_is_given_up() -> None:
    async def script(server: Server, client: Client) -> None:
        began = time.monotonic()
        with pytest.raises(Unreachable) as caught:
            await told(client, msgspec.structs.replace(WATCH, timeout=0.5))
        assert caught.value.what == "time-out"
        assert 0.4 < time.monotonic() - began < 3

    play(script, Fault("silence", after=2))


def test_a_server_that_takes_the_watch_and_never_answers_is_given_up() -> None:
    async def script(server: Server, client: Client) -> None:
        with pytest.raises(Unreachable):
            await told(client, msgspec.structs.replace(WATCH, timeout=0.5))

    play(script, Fault("hang"))


def test_a_cut_in_the_middle_of_a_line_is_an_error_not_an_end() -> None:
    async def script(server: Server, client: Client) -> None:
        with pytest.raises(Unreachable) as caught:
            await told(client)
        assert caught.value.what == "broken"

    play(script, Fault("cut", after=1))


def test_errors_in_the_stream_are_typed_as_answers_are() -> None:
    async def script(server: Server, client: Client) -> None:
        with pytest.raises(ServerFault):
            await told(client)
        with pytest.raises(Forbidden):
            await told(client)

    play(script, Fault("error"), Fault("error", code=403, reason="Forbidden"))


def test_doubled_and_swapped_events_are_passed_on_as_they_come() -> None:
    async def script(server: Server, client: Client) -> None:
        assert (await told(client))[:3] == ["Added a", "Added a", "Added b"]
        assert (await told(client))[:2] == ["Added b", "Added a"]

    play(script, Fault("duplicate"), Fault("reorder"))


def test_one_broken_object_does_not_stop_the_others() -> None:
    async def script(server: Server, client: Client) -> None:
        put(server, "c", number=7)
        put(server, "d")
        assert (await told(client))[-2:] == ["Unreadable c", "Added d"]

    play(script)


def test_a_line_of_megabytes_is_one_event() -> None:
    async def script(server: Server, client: Client) -> None:
        put(server, "big", k="x" * (3 << 20))
        sizes = [
            len(event.object.data.get("k", ""))
            async for event in watch(client, WATCH, Thing)
            if isinstance(event, Added | Modified | Deleted)
        ]
        assert sizes[-1] == 3 << 20

    play(script)


def test_leaving_a_watch_closes_its_connection() -> None:
    async def script(server: Server, client: Client) -> None:
        request = requests.watch(CONFIGMAPS, "n", resource_version="100", seconds=60)
        async with aclosing(watch(client, request, Thing)) as events:
            async for _ in events:
                break
        for _ in range(50):
            put(server, "a", t=str(time.monotonic()))
            await asyncio.sleep(0.02)
            if not server.objects.listeners:
                break
        assert not server.objects.listeners

    play(script)


def test_a_flood_is_read_in_batches_and_completely() -> None:
    """Hundreds of pods change together; each change alone would cost a read of its own."""
    count = 200

    async def script(server: Server, client: Client) -> None:
        sizes: list[int] = []
        patient = requests.watch(CONFIGMAPS, "n", resource_version="100", gather=0.5)
        async with aclosing(client.batches(patient)) as batches:
            pouring = asyncio.create_task(pour(server))
            seen: list[bytes] = []
            async for batch in batches:
                sizes.append(len(batch))
                seen += [line for line in batch if b'"flood-' in line]
                if len(seen) == count:
                    break
            await pouring
        names = [msgspec.json.decode(line)["object"]["metadata"]["name"] for line in seen]
        assert names == [f"flood-{number}" for number in range(count)]
        assert len(sizes) < count / 2

    async def pour(server: Server) -> None:
        for number in range(count):
            put(server, f"flood-{number}")
            await asyncio.sleep(0.001)  # one by one, as changes come

    play(script)
