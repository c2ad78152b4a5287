"""The reflector against a server that misbehaves: the store always comes to agree with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from mpi_trainer.kube.client import Client
from mpi_trainer.kube.resources import CONFIGMAPS
from mpi_trainer.runtime.partial import Key, Meta, Partial
from mpi_trainer.runtime.reflector import Reflector
from mpi_trainer.runtime.store import Store
from tests.sim.faults import Fault
from tests.sim.server import Server
from tests.sim.waiting import until


class Thing(Partial, frozen=True, gc=False):
    metadata: Meta
    data: Mapping[str, str] = {}


class Scene:
    """A server, a reflector over it, and what the reflector told."""

    def __init__(self, server: Server, client: Client) -> None:
        self.server = server
        self.store: Store[Thing] = Store()
        self.told: list[tuple[str, bool]] = []
        self.reflector = Reflector(
            client, CONFIGMAPS, Thing, self.store, on_change=self._hear, chance=lambda: 0.0
        )

    def _hear(self, old: Thing | None, new: Thing | None) -> None:
        word = "~" if old and new else "+" if new else "-"
        thing = new or old
        assert thing is not None
        self.told.append((word + thing.metadata.name, self.reflector.listing))

    @property
    def words(self) -> list[str]:
        return [word for word, _ in self.told]

    def put(self, name: str, **data: str) -> None:
        self.server.put(CONFIGMAPS, {"metadata": {"name": name, "namespace": "n"}, "data": data})

    def remove(self, name: str) -> None:
        self.server.remove(CONFIGMAPS, "n", name)

    def seen(self) -> dict[str, Mapping[str, str]]:
        return {thing.metadata.name: thing.data for thing in self.store}

    def real(self) -> dict[str, Mapping[str, str]]:
        return {
            key[2]: one.get("data", {})
            for key, one in self.server.objects.objects.items()
            if key[0].endswith("configmaps")
        }

    async def agrees(self) -> None:
        await until(lambda: self.seen() == self.real())


def play(
    script: Callable[[Scene], Awaitable[None]], *faults: Fault, bookmarks: float = 0.1
) -> None:
    async def run() -> None:
        async with Server(faults, bookmarks=bookmarks) as server, Client(server.config) as client:
            scene = Scene(server, client)
            scene.put("a")
            scene.put("b")
            async with asyncio.TaskGroup() as group:
                running = group.create_task(scene.reflector.run())
                async with asyncio.timeout(20):
                    await scene.reflector.wait_synced()
                    await script(scene)
                running.cancel()

    asyncio.run(run())


def test_a_store_is_filled_by_a_list_and_kept_by_a_watch() -> None:
    async def script(scene: Scene) -> None:
        assert scene.told == [("+a", True), ("+b", True)]
        scene.put("a", k="v")
        scene.put("c")
        scene.remove("b")
        await scene.agrees()
        assert scene.told[2:] == [("~a", False), ("+c", False), ("-b", False)]
        assert scene.store.get(Key("n", "b")) is None

    play(script)


def test_a_deletion_that_no_watch_showed_is_found_by_the_list_after_410() -> None:
    async def script(scene: Scene) -> None:
        await until(lambda: scene.reflector.watches == 1)
        scene.server.faults.append(Fault("answer", watch=True, code=503, times=1))
        scene.server.cut_watches()
        scene.remove("a")
        scene.put("c")
        scene.server.objects.compact()
        await scene.agrees()
        assert scene.reflector.lists == 2
        assert scene.words == ["+a", "+b", "-a", "+c"]

    play(script)
