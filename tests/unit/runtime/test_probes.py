"""What counts as ill: this process, never the API server."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from mpi_trainer.kube.client import Client
from mpi_trainer.kube.config import Config
from mpi_trainer.kube.resources import PODS
from mpi_trainer.runtime.loop_lag import LoopLag
from mpi_trainer.runtime.manager import Manager, Parts
from mpi_trainer.runtime.metrics import Metrics
from mpi_trainer.runtime.partial import Meta, Partial
from mpi_trainer.runtime.probes import Probes
from mpi_trainer.runtime.reflector import Reflector
from mpi_trainer.runtime.store import Store
from mpi_trainer.runtime.workers import DONE, Result, Workers, WorkerSettings
from mpi_trainer.runtime.workqueue import WorkQueue
from tests.unit.runtime.fake_time import FakeTime, now, run_in_fake_time


class Thing(Partial, frozen=True, gc=False):
    metadata: Meta


class Scene:
    def __init__(self) -> None:
        self.metrics = Metrics()
        self.probes = Probes(self.metrics)
        self.pods = Reflector(Client(Config("http://127.0.0.1:1")), PODS, Thing, Store[Thing]())
        self.queue: WorkQueue[str] = WorkQueue()
        workers = Workers(
            "mpijob", self.queue, self.never, self.metrics, settings=WorkerSettings(timeout=1e9)
        )
        self.manager = Manager(
            Parts(
                metrics=self.metrics,
                probes=self.probes,
                reflectors=[self.pods],
                workers=[workers],
            )
        )

    async def never(self, _: str) -> Result:
        return DONE

    def ill(self) -> list[str]:
        return [f"{name}: {why}" for name, check in self.probes.healthy.items() if (why := check())]


def stall(seconds: float) -> None:
    """The loop is blocked for so long."""
    cast("FakeTime", asyncio.get_running_loop()).stall(seconds)


def test_a_reflector_that_has_stopped_trying_is_ill_and_one_that_fails_is_not() -> None:
    async def scenario() -> None:
        scene = Scene()
        assert scene.ill() == [], "not started yet"
        scene.pods.active_at = now()
        await asyncio.sleep(299)
        assert scene.ill() == []
        await asyncio.sleep(2)
        assert scene.ill() == ["caches: pods: no sign of life in 300 s"]
        scene.pods.active_at = now()
        assert scene.ill() == []

    run_in_fake_time(scenario())


def test_a_look_that_never_ends_is_ill() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.queue.add("a")
        await scene.queue.get()
        await asyncio.sleep(599)
        assert scene.ill() == []
        await asyncio.sleep(2)
        assert scene.ill() == ["workers: mpijob: in one key for 600 s"]

    run_in_fake_time(scenario())


def test_a_loop_that_is_late_again_and_again_is_ill_and_one_pause_is_not() -> None:
    async def scenario() -> None:
        scene = Scene()
        running = asyncio.ensure_future(scene.manager._lag.run())
        await asyncio.sleep(10.5)
        stall(20)
        await asyncio.sleep(3)
        assert scene.ill() == []
        for _ in range(4):
            stall(7)
            await asyncio.sleep(0)
            await asyncio.sleep(0.5)
        assert scene.ill() == ["event loop: late by 6.9 s"]
        worst = scene.metrics.registry.get_sample_value("event_loop_lag_seconds")
        assert worst == pytest.approx(20, abs=0.2), "of the last minute"
        running.cancel()

    run_in_fake_time(scenario())


def test_the_first_samples_say_nothing() -> None:
    assert LoopLag(Metrics()).sustained == 0.0


def test_empty_caches_are_not_ready() -> None:
    async def scenario() -> None:
        scene = Scene()
        assert scene.probes.ready["caches"]() == "not filled yet: pods"
        scene.pods._synced.set()
        assert scene.probes.ready["caches"]() == ""

    run_in_fake_time(scenario())
