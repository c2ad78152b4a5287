"""A reflector over a scripted server, and what it told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Final

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.resources import CONFIGMAPS
from mpi_trainer.runtime.partial import Meta, Partial
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
        self.unreadable: list[tuple[str, str]] = []
        self.reflector = Reflector(
            client,
            CONFIGMAPS,
            Thing,
            self.store,
            on_change=self._hear,
            on_unreadable=lambda _, whose, why: self.unreadable.append((whose.name, why)),
            chance=lambda: 0.0,
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


LONGEST: Final = 60.0
"""Half a second for an answer is little on a busy machine: some are asked for again and again."""


class Hasty(Client):
    """The client with its time-outs shortened, so that tests need not wait for a minute."""

    silence = 0.5
    answer = 0.5

    async def fetch(self, request: Request) -> bytes:
        return await super().fetch(msgspec.structs.replace(request, timeout=self.answer))

    async def batches(
        self, request: Request, longest: int = bounds.HELD
    ) -> AsyncGenerator[list[bytes], None]:
        short = msgspec.structs.replace(request, timeout=self.silence)
        async with aclosing(super().batches(short, longest)) as batches:
            async for batch in batches:
                yield batch


def play(
    script: Callable[[Scene], Awaitable[None]],
    *faults: Fault,
    silence: float = Hasty.silence,
    answer: float = Hasty.answer,
) -> None:
    """The script begins once the store has been filled with a and b and the watch is open."""

    async def run() -> None:
        async with Server(faults, bookmarks=0.1) as server, Hasty(server.config) as client:
            client.silence, client.answer = silence, answer
            scene = Scene(server, client)
            scene.put("a")
            scene.put("b")
            async with asyncio.TaskGroup() as group:
                running = group.create_task(scene.reflector.run())
                async with asyncio.timeout(LONGEST):
                    await scene.reflector.wait_synced()
                    await until(lambda: bool(server.sent("GET", "configmaps")[1:]))
                    await script(scene)
                running.cancel()

    asyncio.run(run())
