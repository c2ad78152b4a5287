"""Whole collections from a server that forgets, and with objects that are broken."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Gone
from mpi_trainer.kube.lists import list_all, pages
from mpi_trainer.kube.resources import CONFIGMAPS
from tests.sim.faults import Fault
from tests.sim.server import Server


class Meta(msgspec.Struct, frozen=True):
    name: str


class Thing(msgspec.Struct, frozen=True):
    metadata: Meta
    data: dict[str, str] = {}


NAMES = [f"c{number}" for number in range(7)]


def play(script: Callable[[Server, Client], Awaitable[None]], *faults: Fault) -> None:
    async def run() -> None:
        async with Server(faults) as server, Client(server.config) as client:
            for name in NAMES:
                server.put(CONFIGMAPS, {"metadata": {"name": name, "namespace": "n"}, "data": {}})
            async with asyncio.timeout(20):
                await script(server, client)

    asyncio.run(run())


def names(things: tuple[Thing, ...]) -> list[str]:
    return [thing.metadata.name for thing in things]


def test_pages_are_asked_for_one_after_the_other() -> None:
    async def script(server: Server, client: Client) -> None:
        found = [page async for page in pages(client, CONFIGMAPS, Thing, limit=3)]
        assert [len(page.items) for page in found] == [3, 3, 1]
        assert names(sum((page.items for page in found), ())) == NAMES
        assert found[-1].resource_version == str(server.objects.version)
        assert not any(page.again for page in found)

    play(script)


def test_a_token_too_old_starts_the_list_again_in_one_piece() -> None:
    async def script(server: Server, client: Client) -> None:
        found = []
        async for page in pages(client, CONFIGMAPS, Thing, limit=3):
            found.append(page)
            if len(found) == 1:
                server.remove(CONFIGMAPS, "n", "c0")
                server.objects.compact()
        assert [page.again for page in found] == [False, True]
        assert names(found[-1].items) == NAMES[1:]

    play(script)


def test_a_list_that_is_gone_from_the_start_is_the_callers_business() -> None:
    async def script(server: Server, client: Client) -> None:
        with pytest.raises(Gone):
            await list_all(client, CONFIGMAPS, Thing)

    play(script, Fault("answer", code=410, reason="Expired", times=9))


def test_one_broken_object_is_named_and_hides_no_other() -> None:
    async def script(server: Server, client: Client) -> None:
        broken = {"metadata": {"name": "c3", "namespace": "n"}, "data": {"k": 7}}
        server.put(CONFIGMAPS, broken)
        found = await list_all(client, CONFIGMAPS, Thing, namespace="n")
        assert names(found.items) == [name for name in NAMES if name != "c3"]
        (bad,) = found.unreadable
        assert (bad.metadata.name, bad.metadata.namespace) == ("c3", "n")
        assert "$.data" in bad.why

    play(script)


def test_an_object_nested_too_deeply_is_named_and_hides_no_other() -> None:
    """S-3."""

    async def script(server: Server, client: Client) -> None:
        deep = msgspec.Raw(b'{"a":' * 1100 + b"1" + b"}" * 1100)
        server.put(CONFIGMAPS, {"metadata": {"name": "c3", "namespace": "n"}, "spec": deep})
        found = await list_all(client, CONFIGMAPS, Thing, namespace="n")
        assert names(found.items) == [name for name in NAMES if name != "c3"]
        (bad,) = found.unreadable
        assert (bad.metadata.name, "nested too deeply" in bad.why) == ("c3", True)

    play(script)
