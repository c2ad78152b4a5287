"""A manager's whole life against a real socket: start order, hand-over, loss, graceful stop."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import msgspec
import pytest

from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import KubeError
from mpi_trainer.kube.resources import CONFIGMAPS, LEASES
from mpi_trainer.runtime.leases import Claim, Elector, LeaseLost
from mpi_trainer.runtime.manager import Manager, Parts, Times
from mpi_trainer.runtime.metrics import Metrics
from mpi_trainer.runtime.partial import Key, Meta, Partial, key_of
from mpi_trainer.runtime.probes import Probes
from mpi_trainer.runtime.recorder import EventSubject, Recorder
from mpi_trainer.runtime.reflector import Reflector
from mpi_trainer.runtime.store import Store
from mpi_trainer.runtime.workers import DONE, Result, Workers
from mpi_trainer.runtime.workqueue import WorkQueue
from tests.sim.faults import Fault
from tests.sim.objects import Change
from tests.sim.server import Server
from tests.sim.server import key_of as place_of
from tests.sim.waiting import until

LEASE = place_of(LEASES, "n", "lead")


class Thing(Partial, frozen=True, gc=False):
    metadata: Meta


class Replica:
    """A controller that writes its name on every ConfigMap that it sees."""

    def __init__(self, who: str, client: Client, leases: Client, times: Times) -> None:
        self.who = who
        self.looks: list[str] = []
        self.wrote: list[str] = []
        self.hold = asyncio.Event()
        self.hold.set()
        self.metrics = Metrics()
        claim = Claim("n", "lead", who, lease=6.0, renew=5.0, retry=0.4)
        self.elector = Elector(leases, claim, self.metrics, chance=lambda: 0.0)
        self.client = client.until(self.elector.remaining)
        self.store: Store[Thing] = Store()
        self.queue: WorkQueue[Key] = WorkQueue(observer=self.metrics.queue("things"))
        self.reflector = Reflector(
            client, CONFIGMAPS, Thing, self.store, on_change=self._wake, chance=lambda: 0.0
        )
        self.recorder = Recorder(self.client, "test", who, self.metrics)
        self.probes = Probes(self.metrics, ports=(0,), host="127.0.0.1")
        workers = Workers("things", self.queue, self.reconcile, self.metrics)
        self.manager = Manager(
            Parts(
                metrics=self.metrics,
                probes=self.probes,
                reflectors=[self.reflector],
                workers=[workers],
                recorder=self.recorder,
                elector=self.elector,
                times=times,
            )
        )

    def _wake(self, old: Thing | None, new: Thing | None) -> None:
        if new is not None:
            self.queue.add(key_of(new), urgent=not self.reflector.listing)

    async def reconcile(self, key: Key) -> Result:
        if self.store.get(key) is None:
            return DONE
        self.looks.append(key.name)
        await self.hold.wait()
        body = {"metadata": {"labels": {"by": self.who}}}
        await self.client.call(requests.patch(CONFIGMAPS, "n", key.name, body, "merge"), None)
        self.wrote.append(key.name)
        about = EventSubject("v1", "ConfigMap", "n", key.name, "uid")
        self.recorder.record(about, "Normal", "Labelled", f"by {self.who}")
        return DONE

    async def ask(self, path: str) -> tuple[int, str]:
        host, port = self.probes.addresses[0]
        async with (
            aiohttp.ClientSession() as session,
            session.get(
                f"http://{host}:{port}{path}", timeout=aiohttp.ClientTimeout(total=5)
            ) as answer,
        ):
            return answer.status, await answer.text()


class Scene:
    def __init__(self, server: Server, stack: AsyncExitStack) -> None:
        self.server = server
        self._stack = stack

    def put(self, name: str) -> None:
        self.server.put(CONFIGMAPS, {"metadata": {"name": name, "namespace": "n"}})

    def by(self, name: str) -> str | None:
        found = self.server.objects.get(place_of(CONFIGMAPS, "n", name))
        label: str | None = found["metadata"].get("labels", {}).get("by")
        return label

    def holder(self) -> Any:
        return self.server.objects.objects.get(LEASE, {}).get("spec", {}).get("holderIdentity")

    async def replica(self, who: str, times: Times = Times()) -> Replica:  # noqa: B008
        config = self.server.config
        clients = [await self._stack.enter_async_context(Client(config)) for _ in range(2)]
        return Replica(who, clients[0], clients[1], times)


def play(script: Callable[[Scene], Awaitable[None]], *faults: Fault) -> None:
    async def run() -> None:
        async with (
            asyncio.timeout(30),
            Server(faults, bookmarks=0.1) as server,
            AsyncExitStack() as stack,
        ):
            await script(Scene(server, stack))

    asyncio.run(run())


def test_probes_come_first_then_leadership_then_caches_then_work() -> None:
    """P-6: where nobody leads, everything is listed once."""

    async def script(scene: Scene) -> None:
        scene.put("a")
        one = await scene.replica("one")
        running = asyncio.ensure_future(one.manager.run())
        await until(lambda: bool(scene.server.sent("GET", "configmaps")))
        assert (await one.ask("/healthz"))[0] == 200
        assert await one.ask("/readyz") == (503, "caches: not filled yet: configmaps")
        assert scene.holder() == "one", "before the list, which need not be repeated then"
        assert one.looks == []
        await until(lambda: scene.by("a") == "one")
        assert (await one.ask("/readyz"))[0] == 200
        status, text = await one.ask("/metrics")
        assert status == 200
        assert 'leader_election_master_status{name="lead"} 1.0' in text
        assert 'reflector_lists_total{name="configmaps"} 1.0' in text
        assert 'reflector_last_event_age_seconds{name="configmaps"}' in text
        one.manager.stop()
        assert await running == 0

    play(script, Fault("late", path="configmaps", seconds=0.7))


def test_a_standby_is_ready_but_does_nothing_until_the_leader_has_stopped() -> None:
    async def script(scene: Scene) -> None:
        one, two = await scene.replica("one"), await scene.replica("two")
        first = asyncio.ensure_future(one.manager.run())
        await until(lambda: scene.holder() == "one")
        second = asyncio.ensure_future(two.manager.run())
        scene.put("a")
        await until(lambda: scene.by("a") == "one" and two.reflector.synced)
        assert (await two.ask("/readyz"))[0] == 200
        assert two.looks == []
        one.hold.clear()
        scene.put("b")
        await until(lambda: "b" in one.looks)
        one.manager.stop()
        await asyncio.sleep(1)
        assert scene.holder() == "one", "the lease is kept while work is finished"
        one.hold.set()
        assert await first == 0
        assert one.wrote[-1] == "b"
        await until(lambda: scene.by("a") == "two")
        two.manager.stop()
        assert await second == 0
        assert scene.holder() == ""

    play(script)


def test_a_new_leader_sees_what_the_old_one_wrote_before_it_decides() -> None:
    """Even if its own watch has been silent for a while."""

    async def script(scene: Scene) -> None:
        one, two = await scene.replica("one"), await scene.replica("two")
        scene.put("a")
        first = asyncio.ensure_future(one.manager.run())
        await until(lambda: scene.by("a") == "one")
        scene.server.faults.append(Fault("silence"))
        second = asyncio.ensure_future(two.manager.run())
        await until(lambda: two.reflector.synced and not scene.server.faults[0].times)
        scene.server.remove(CONFIGMAPS, "n", "a")
        scene.put("b")
        await until(lambda: scene.by("b") == "one")
        one.manager.stop()
        assert await first == 0
        await until(lambda: scene.by("b") == "two")
        assert "a" not in two.looks
        two.manager.stop()
        assert await second == 0

    play(script)


def test_a_signal_lets_work_finish_and_writes_the_last_events() -> None:
    async def script(scene: Scene) -> None:
        one = await scene.replica("one")
        one.hold.clear()
        scene.put("a")
        running = asyncio.ensure_future(one.manager.run())
        await until(lambda: one.looks == ["a"])
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.3)  # long enough to end, were the work not waited for
        assert not running.done()
        one.hold.set()
        assert await running == 0
        assert scene.by("a") == "one"
        events = [key for key in scene.server.objects.objects if key[0].endswith("/events")]
        assert len(events) == 1
        assert scene.holder() == ""

    # Refused at first, so that only the writing at the end can bring it.
    play(script, Fault("answer", method="POST", path="events", code=429, reason="TooManyRequests"))


def test_work_that_does_not_finish_is_cut_off_and_the_lease_runs_out_by_itself() -> None:
    async def script(scene: Scene) -> None:
        one = await scene.replica("one", Times(stop=5.5))
        one.hold.clear()
        scene.put("a")
        running = asyncio.ensure_future(one.manager.run())
        await until(lambda: one.looks == ["a"])
        one.manager.stop()
        async with asyncio.timeout(5.5):
            assert await running == 0
        assert scene.holder() == "one", "a write of ours may still be on its way"

    play(script)


def test_a_second_signal_does_not_wait() -> None:
    async def script(scene: Scene) -> None:
        one = await scene.replica("one")
        one.hold.clear()
        scene.put("a")
        running = asyncio.ensure_future(one.manager.run())
        await until(lambda: one.looks == ["a"])
        one.manager.stop()
        one.manager.stop()
        async with asyncio.timeout(15):
            assert await running == 0

    play(script)


def test_a_standby_can_be_stopped() -> None:
    async def script(scene: Scene) -> None:
        one, two = await scene.replica("one"), await scene.replica("two")
        first = asyncio.ensure_future(one.manager.run())
        await until(lambda: one.elector.leading)
        second = asyncio.ensure_future(two.manager.run())
        await until(lambda: two.reflector.synced)
        two.manager.stop()
        async with asyncio.timeout(15):
            assert await second == 0
        assert scene.holder() == "one"
        one.manager.stop()
        assert await first == 0

    play(script)


def test_caches_that_never_fill_end_the_process() -> None:
    async def script(scene: Scene) -> None:
        one = await scene.replica("one", Times(sync=0.5))
        assert await one.manager.run() == 1
        assert scene.holder() == "", "given back: another may see more"

    play(script, Fault("answer", path="configmaps", code=403, reason="Forbidden", times=1000))


def test_a_lost_lease_ends_the_process_at_once_and_in_mid_work() -> None:
    async def script(scene: Scene) -> None:
        one = await scene.replica("one")
        one.hold.clear()
        scene.put("a")
        running = asyncio.ensure_future(one.manager.run())
        await until(lambda: one.looks == ["a"])
        lease = scene.server.objects.get(LEASE)
        spec = {**lease["spec"], "holderIdentity": "two"}
        scene.server.objects.write(
            LEASE, {"metadata": {"name": "lead", "namespace": "n"}, "spec": spec}
        )
        async with asyncio.timeout(15):
            assert await running == 1
        assert scene.by("a") is None
        assert scene.holder() == "two"

    play(script)


def test_a_restart_of_the_server_costs_neither_leadership_nor_changes() -> None:
    async def script(scene: Scene) -> None:
        one = await scene.replica("one")
        running = asyncio.ensure_future(one.manager.run())
        scene.put("a")
        await until(lambda: scene.by("a") == "one")
        await scene.server.halt()
        scene.put("b")
        await asyncio.sleep(1)
        assert (await one.ask("/healthz"))[0] == 200, "the server's absence is not our illness"
        await scene.server.start()
        await until(lambda: scene.by("b") == "one")
        assert one.elector.leading
        one.manager.stop()
        assert await running == 0

    play(script)


def test_a_storm_of_429_delays_work_but_loses_none() -> None:
    async def script(scene: Scene) -> None:
        one = await scene.replica("one")
        running = asyncio.ensure_future(one.manager.run())
        for number in range(30):
            scene.put(f"x{number}")
        await until(lambda: all(scene.by(f"x{number}") == "one" for number in range(30)))
        one.manager.stop()
        assert await running == 0

    storm = Fault(
        "answer",
        method="PATCH",
        path="configmaps",
        code=429,
        reason="TooManyRequests",
        retry_after="0",
        times=60,
    )
    play(script, storm)


def test_a_fault_of_the_program_ends_the_process_with_a_trace() -> None:
    async def script(scene: Scene) -> None:
        one = await scene.replica("one")

        async def fault() -> None:
            raise RuntimeError("a fault of the program")

        parts = msgspec.structs.replace(one.manager._parts, workers=[], elector=None)
        manager = Manager(parts)
        manager._synced = fault  # type: ignore[method-assign]
        assert await manager.run() == 1

    play(script)


@pytest.mark.parametrize("part", ["leases", ""], ids=["its renewals", "everything"])
def test_never_two_leaders_write_when_one_of_them_hangs(part: str) -> None:
    """Two replicas, each with a line of its own to the one store; a part of one line goes dead.

    The old leader's writer is stubborn: nobody cancels it, only the client stops its writes.
    """

    async def run() -> None:
        async with (
            asyncio.timeout(30),
            Server(bookmarks=0.1) as server,
            Server(bookmarks=0.1) as other,
            AsyncExitStack() as stack,
        ):
            other.objects = server.objects
            scene = Scene(server, stack)
            scene.put("a")
            one, two = await scene.replica("one"), await Scene(other, stack).replica("two")
            await one.elector.acquire()
            keeping = asyncio.ensure_future(one.elector.keep())
            stubborn = asyncio.ensure_future(_write_for_ever(one))
            second = asyncio.ensure_future(two.manager.run())
            await until(lambda: len(server.sent("PATCH", "configmaps")) > 20)
            server.faults.append(Fault("hang", path=part, times=10**6))
            await until(lambda: two.elector.leading)
            assert isinstance(keeping.exception(), LeaseLost)
            await until(lambda: scene.by("a") == "two")
            await asyncio.sleep(0.5)
            writers = [_writer(change) for change in server.objects.history]
            taken = writers.index("takes: two")
            assert "writes: one" in writers[:taken]
            assert "writes: one" not in writers[taken:]
            assert "writes: two" in writers[taken:]
            stubborn.cancel()
            two.manager.stop()
            assert await second == 0

    asyncio.run(run())


async def _write_for_ever(replica: Replica) -> None:
    for number in itertools.count():
        body = {"metadata": {"labels": {"by": replica.who, "n": str(number)}}}
        with contextlib.suppress(KubeError):
            await replica.client.call(requests.patch(CONFIGMAPS, "n", "a", body, "merge"), None)
        await asyncio.sleep(0.01)


def _writer(change: Change) -> str:
    if change.key == LEASE:
        before = (change.before or {}).get("spec", {}).get("holderIdentity")
        holder = change.object["spec"]["holderIdentity"]
        return f"takes: {holder}" if holder != before else "renews"
    return f"writes: {(change.object['metadata'].get('labels') or {}).get('by')}"
