"""A server that answers every list with 410."""

from __future__ import annotations

import asyncio
from typing import cast

from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Status, from_status
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.resources import CONFIGMAPS
from mpi_trainer.runtime.partial import Meta, Partial
from mpi_trainer.runtime.reflector import Reflector
from mpi_trainer.runtime.store import Store
from tests.unit.runtime.fake_time import run_in_fake_time


class Thing(Partial, frozen=True, gc=False):
    metadata: Meta


class _Expired:
    asked = 0

    async def fetch(self, request: Request) -> bytes:
        self.asked += 1
        await asyncio.sleep(0.001)
        raise from_status(request, Status(code=410, reason="Expired", message="too old"))


def test_lists_that_are_gone_are_not_asked_for_in_a_hot_loop() -> None:
    """Two hundred in the first second it were."""
    server = _Expired()
    reflector = Reflector(cast(Client, server), CONFIGMAPS, Thing, Store())
    run_in_fake_time(_for_a_minute(reflector))
    assert server.asked < 60


async def _for_a_minute(reflector: Reflector[Thing]) -> None:
    task = asyncio.create_task(reflector.run())
    await asyncio.sleep(60)
    task.cancel()
