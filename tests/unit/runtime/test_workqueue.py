"""The work queue's promises, in jumping time."""

from __future__ import annotations

import asyncio

import pytest

from mpi_trainer.runtime.backoff import Curve
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.workqueue import PATIENCE, Closed, WorkQueue
from tests.unit.runtime.fake_time import now, run_in_fake_time

PLAIN = Curve(first=1.0, cap=8.0, spread=0.0)


class Heard:
    def __init__(self) -> None:
        self.words: list[str] = []

    def added(self) -> None:
        self.words.append("added")

    def started(self, waited: float) -> None:
        self.words.append(f"started {waited:g}")

    def finished(self, worked: float) -> None:
        self.words.append(f"finished {worked:g}")

    def retried(self) -> None:
        self.words.append("retried")


async def taken(queue: WorkQueue[str]) -> list[str]:
    """What can be had at once, given back again."""
    keys = []
    while queue.depth(urgent=True) or queue.depth(urgent=False):
        keys.append(await queue.get())
        queue.done(keys[-1])
    return keys


def test_a_key_added_many_times_is_handed_out_once() -> None:
    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue()
        for key in "abaabb":
            queue.add(key)
        assert await taken(queue) == ["a", "b"]

    run_in_fake_time(scenario())


def test_a_key_in_work_is_not_given_to_a_second_worker_and_comes_again_once() -> None:
    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        assert await queue.get() == "a"
        queue.add("a")
        queue.add("a")
        second = asyncio.ensure_future(queue.get())
        await asyncio.sleep(5)
        assert not second.done()
        queue.done("a")
        assert await second == "a"
        queue.done("a")
        assert await taken(queue) == []

    run_in_fake_time(scenario())


def test_urgent_keys_go_first_and_a_waiting_key_may_become_urgent() -> None:
    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue()
        for key in "abc":
            queue.add(key, urgent=False)
        queue.add("x")
        queue.add("b")
        queue.add("x", urgent=False)
        queue.add("a", urgent=False)
        queue.add_after("c", 0, urgent=False)
        assert await taken(queue) == ["x", "b", "a", "c"]

    run_in_fake_time(scenario())


def test_a_flood_of_urgent_keys_does_not_starve_the_rest() -> None:
    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("calm", urgent=False)
        for number in range(100):
            queue.add(str(number))
        order = await taken(queue)
        assert order.index("calm") == PATIENCE

    run_in_fake_time(scenario())


def test_namespaces_take_turns() -> None:
    """S-15: two thousand jobs of one namespace do not keep another's waiting."""

    async def scenario() -> None:
        queue: WorkQueue[Key] = WorkQueue()
        for number in range(2000):
            queue.add(Key("flood", f"job-{number}"))
            queue.add(Key("flood", f"old-{number}"), urgent=False)
        queue.add(Key("lab", "mine"))
        queue.add(Key("lab", "old"), urgent=False)
        for wanted, within in ((Key("lab", "mine"), 3), (Key("lab", "old"), 3 * PATIENCE)):
            for _ in range(within):
                key = await queue.get()
                queue.done(key)
                if key == wanted:
                    break
            else:
                raise AssertionError(f"{wanted} has not had its turn")

    run_in_fake_time(scenario())


def test_a_delayed_key_comes_at_its_time_and_an_earlier_wish_wins() -> None:
    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue()
        began = now()
        queue.add_after("a", 100)
        queue.add_after("b", 50)
        queue.add_after("a", 10)
        queue.add_after("a", 70)
        assert (await queue.get(), round(now() - began, 3)) == ("a", 10)
        queue.done("a")
        assert (await queue.get(), round(now() - began, 3)) == ("b", 50)
        queue.done("b")
        await asyncio.sleep(200)
        assert await taken(queue) == []

    run_in_fake_time(scenario())


def test_an_event_takes_the_place_of_a_later_look() -> None:
    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add_after("a", 100)
        queue.add("a")
        assert await taken(queue) == ["a"]
        await asyncio.sleep(200)
        assert await taken(queue) == []

    run_in_fake_time(scenario())


def test_a_look_planned_during_work_waits_its_time_but_not_beside_an_event() -> None:
    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        began = now()
        await queue.get()
        queue.add_after("a", 30)
        queue.done("a")
        assert (await queue.get(), round(now() - began, 3)) == ("a", 30)
        queue.add("a")
        queue.add_after("a", 30)
        queue.done("a")
        assert (await queue.get(), round(now() - began, 3)) == ("a", 30)
        queue.done("a")
        assert queue.delayed() == 0

    run_in_fake_time(scenario())


def test_failures_of_a_key_wait_longer_each_time_until_forgotten() -> None:
    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue(curve=PLAIN)
        assert [queue.retry("a") for _ in range(6)] == [1, 2, 4, 8, 8, 8]
        assert queue.retry("b") == 1
        queue.forget("a")
        assert queue.retry("a") == 1
        assert queue.retry("a", at_least=30) == 30
        assert queue.failures("a") == 2

    run_in_fake_time(scenario())


def test_a_retry_keeps_the_urgency_that_its_key_had() -> None:
    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue(curve=PLAIN)
        queue.add("calm", urgent=False)
        await queue.get()
        queue.retry("calm")
        queue.done("calm")
        await asyncio.sleep(2)
        assert (queue.depth(urgent=True), queue.depth(urgent=False)) == (0, 1)

    run_in_fake_time(scenario())


def test_keys_wait_with_a_jitter_of_a_tenth() -> None:
    from mpi_trainer.runtime.backoff import KEYS

    assert KEYS.delay(0, lambda: 0.0) == pytest.approx(0.0045)
    assert KEYS.delay(0, lambda: 1.0) == pytest.approx(0.0055)
    assert KEYS.delay(10_000, lambda: 0.5) == 300


def test_a_closed_queue_hands_out_nothing_and_wakes_its_workers() -> None:
    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue()
        waiting = [asyncio.ensure_future(queue.get()) for _ in range(3)]
        await asyncio.sleep(1)
        queue.add("working")
        assert await waiting[0] == "working"
        queue.add_after("later", 5)
        queue.add("working")
        queue.close()
        queue.add("a")
        queue.add_after("b", 1)
        queue.done("working")
        for each in waiting[1:]:
            with pytest.raises(Closed):
                await each
        await asyncio.sleep(10)
        with pytest.raises(Closed):
            await queue.get()

    run_in_fake_time(scenario())


def test_a_cancelled_worker_passes_its_turn_on() -> None:
    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue()
        first, second = (asyncio.ensure_future(queue.get()) for _ in range(2))
        await asyncio.sleep(1)
        queue.add("a")
        first.cancel()
        assert await second == "a"
        third, fourth = (asyncio.ensure_future(queue.get()) for _ in range(2))
        await asyncio.sleep(1)
        third.cancel()
        await asyncio.sleep(1)
        queue.add("b")
        assert await fourth == "b"
        fifth, sixth = (asyncio.ensure_future(queue.get()) for _ in range(2))
        await asyncio.sleep(1)
        fifth.cancel()
        queue.add("c")
        assert await sixth == "c"
        last = asyncio.ensure_future(queue.get())
        await asyncio.sleep(1)
        last.cancel()
        queue.close()
        with pytest.raises(asyncio.CancelledError):
            await last

    run_in_fake_time(scenario())


def test_superseded_looks_do_not_pile_up() -> None:
    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add_after("first", 60)  # before all that is superseded
        for _ in range(10_000):
            queue.add_after("a", 7 * 86400)
            queue.add("a")
            await queue.get()
            queue.done("a")
        assert len(queue._heap) < 100

    run_in_fake_time(scenario())


def test_metrics_hear_of_waiting_and_working() -> None:
    async def scenario() -> None:
        heard = Heard()
        queue: WorkQueue[str] = WorkQueue(curve=PLAIN, observer=heard)
        queue.add("a")
        queue.add("a")
        await asyncio.sleep(2)
        await queue.get()
        queue.add("a")
        queue.add("a")
        await asyncio.sleep(3)
        assert queue.ages() == [pytest.approx(3)]
        queue.retry("a")
        queue.done("a")
        words = ["added", "started 2", "added", "retried", "finished 3"]
        assert heard.words == words
        assert queue.ages() == []

    run_in_fake_time(scenario())
