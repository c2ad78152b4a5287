"""One watch of jobs for many readers, before an API server that misbehaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any

import pytest

from mpi_trainer.kube.resources import MPIJOBS
from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend
from mpi_trainer.server.live.access import Reader
from mpi_trainer.server.live.shared import MOST_WAITING, Mailbox, Scope, SharedWatch, SharedWatches
from tests.sim.faults import Fault
from tests.sim.server import Server
from tests.sim.waiting import until

pytestmark = pytest.mark.timeout(60)
SCOPE: Scope = ("it", "MPIJob", "team")
Object = dict[str, Any]


def job(name: str, label: str = "") -> Object:
    return {
        "apiVersion": MPIJOBS.api_version,
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": "team", "labels": {"n": label}},
        "spec": {"mpiReplicaSpecs": {"Launcher": {"replicas": 1, "template": {}}}},
    }


class Lab:
    """Readers with a login of their own each."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.watches = SharedWatches()
        self.held: list[tuple[SharedWatch, Mailbox]] = []

    async def join(self) -> tuple[SharedWatch, Mailbox]:
        backend = ClusterBackend(self.server.config, say=lambda text: None)
        box = Mailbox(Reader(str(len(self.held)), backend))
        found = self.watches.join(SCOPE, box)
        self.held.append((found, box))
        await asyncio.wait_for(found.synced.wait(), 10)
        return found, box

    def leave(self, place: int) -> None:
        found, box = self.held[place]
        self.watches.leave([found], box)

    def asked(self, *, watch: bool) -> int:
        sent = self.server.sent("GET", "mpijobs")
        return sum(("watch" in one.query) is watch for one in sent)


@asynccontextmanager
async def lab(*faults: Fault) -> AsyncIterator[Lab]:
    async with Server(faults) as server:
        server.put(MPIJOBS, job("one"))
        made = Lab(server)
        yield made
        for place in range(len(made.held)):
            made.leave(place)
        assert len(made.watches) == 0
        await asyncio.sleep(0)


def played(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


def names(box: Mailbox) -> list[str]:
    return [one.job.key.name for one in box.take()]


@played
async def test_many_readers_cost_one_list_and_one_watch() -> None:
    async with lab() as one:
        boxes = [(await one.join())[1] for _ in range(20)]
        await until(lambda: one.asked(watch=True) > 0)
        one.server.put(MPIJOBS, job("two"))
        for box in boxes:
            await asyncio.wait_for(box.wake.wait(), 10)
        entries = [box.take() for box in boxes]
        assert all(found == entries[0] for found in entries)
        assert all(found[0] is entries[0][0] for found in entries), "made once"
        assert (one.asked(watch=False), one.asked(watch=True)) == (1, 1)


@played
async def test_the_next_login_goes_on_where_the_last_one_was() -> None:
    async with lab() as one:
        (found, _), (_, box) = await one.join(), await one.join()
        await until(lambda: one.asked(watch=True) > 0)
        one.leave(0)
        one.server.put(MPIJOBS, job("while nobody watches".replace(" ", "-")))
        await asyncio.wait_for(box.wake.wait(), 10)
        assert names(box) == ["while-nobody-watches"] and not box.anew
        assert (one.asked(watch=False), one.asked(watch=True)) == (1, 2)
        assert [*found.readers] == [box]


@played
async def test_a_watch_that_breaks_goes_on_and_nothing_comes_twice() -> None:
    async with lab() as one:
        _, box = await one.join()
        await until(lambda: one.asked(watch=True) > 0)
        for number in range(5):
            one.server.put(MPIJOBS, job("one", str(number)))
            if number % 2:
                one.server.cut_watches()
        last = str(one.server.put(MPIJOBS, job("last"))["metadata"]["resourceVersion"])
        seen: list[str] = []
        while last not in seen:
            await asyncio.wait_for(box.wake.wait(), 10)
            seen += [entry.job.resource_version for entry in box.take()]
        assert seen == sorted(set(seen), key=int)
        assert one.asked(watch=False) == 1 and not box.anew


@played
async def test_after_410_everybody_gets_all_jobs_anew() -> None:
    async with lab(Fault("gone", after=1)) as one:
        found, box = await one.join()
        await until(lambda: one.asked(watch=True) > 0)
        one.server.put(MPIJOBS, job("two"))
        await until(lambda: box.anew)
        assert one.asked(watch=False) == 2
        assert {entry.job.key.name for entry in found.jobs.values()} == {"one", "two"}


@played
async def test_who_may_no_longer_read_is_told_and_the_next_one_takes_over() -> None:
    async with lab() as one:
        (_, first), (_, second) = await one.join(), await one.join()
        await until(lambda: one.asked(watch=True) > 0)
        one.server.faults.append(Fault("answer", code=403, reason="Forbidden", watch=True))
        one.server.cut_watches()
        await until(lambda: first.error is not None)
        assert getattr(first.error, "status", 0) == 403
        one.server.put(MPIJOBS, job("two"))
        await asyncio.wait_for(second.wake.wait(), 10)
        assert names(second) == ["two"] and second.error is None
        assert first.take() == (), "nothing more for the first"


@played
async def test_a_kind_that_is_not_served_is_an_empty_list() -> None:
    missing = Fault("answer", code=404, reason="NotFound", times=100, path="mpijobs")
    async with lab(missing) as one:
        found, box = await one.join()
        assert found.jobs == {} and box.error is None


@played
async def test_a_reader_who_takes_nothing_holds_a_bounded_number_of_changes() -> None:
    async with lab() as one:
        _, box = await one.join()
        await until(lambda: one.asked(watch=True) > 0)
        for number in range(MOST_WAITING + 10):
            one.server.put(MPIJOBS, job(f"job-{number}"))
        await until(lambda: box.anew)
        await asyncio.sleep(0.1)
        assert len(box.take()) <= MOST_WAITING
