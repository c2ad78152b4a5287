"""As many writes at once as the server takes."""

from __future__ import annotations

import asyncio

import pytest

from mpi_trainer.controller.write_concurrency import WriteConcurrency
from mpi_trainer.kube.errors import NotFound, Status, TooManyRequests
from mpi_trainer.kube.requests import Request

ASKED = Request("POST", "/x")


class Server:
    """Takes `room` requests at a time and refuses the rest."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.now = self.most = self.refused = self.done = 0

    async def take(self) -> int:
        if self.now >= self.room:
            self.refused += 1
            raise TooManyRequests(ASKED, Status(code=429), retry_after=0.0)
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        self.done += 1
        return self.done


def test_every_write_arrives_though_the_server_takes_few_at_once() -> None:
    async def run() -> None:
        server, concurrency = Server(room=3), WriteConcurrency(first=32)
        answers = await concurrency.each([server.take] * 100)
        assert sorted(a for a in answers if isinstance(a, int)) == list(range(1, 101))
        assert concurrency.limit < 32

    asyncio.run(run())


def test_a_willing_server_is_given_more() -> None:
    async def run() -> None:
        server, concurrency = Server(room=1000), WriteConcurrency(first=2, most=8)
        await concurrency.each([server.take] * 200)
        assert concurrency.limit == 8
        assert server.most <= 8

    asyncio.run(run())


def test_other_failures_are_returned_in_their_place() -> None:
    async def fails() -> int:
        raise NotFound(ASKED, Status(code=404))

    async def works() -> int:
        return 1

    first, second = asyncio.run(WriteConcurrency().each([fails, works]))
    assert isinstance(first, NotFound)
    assert second == 1


def test_patience_has_an_end() -> None:
    with pytest.raises(TooManyRequests):
        asyncio.run(WriteConcurrency(patience=0.0).send(Server(room=0).take))


def test_a_write_counts_less_with_every_second() -> None:
    now = [0.0]
    concurrency = WriteConcurrency(clock=lambda: now[0])
    asyncio.run(concurrency.each([Server(room=1000).take] * 50))
    counts = []
    for now[0] in (0.0, 5.0, 60.0):
        counts.append(round(concurrency.recent_writes))
    assert counts == [50, 30, 0]


class _Counted(WriteConcurrency):
    """Counts how often somebody looks whether there is room."""

    looks = 0

    @property
    def limit(self) -> int:
        self.looks += 1
        return super().limit


def test_nobody_is_woken_in_vain() -> None:
    """P-2: four thousand writes cost four times what a thousand do, not sixteen."""

    async def run() -> None:
        concurrency = _Counted(first=8, most=8)
        await concurrency.each([Server(room=10_000).take] * 2000)
        assert concurrency.looks <= 10 * 2000

    asyncio.run(run())


def test_a_job_of_thousands_does_not_hold_up_one_of_few() -> None:
    """S-15: writes that wait together take turns with the others'."""

    async def run() -> None:
        server, concurrency = Server(room=10_000), WriteConcurrency(first=4, most=4)
        large = asyncio.create_task(concurrency.each([server.take] * 3000))
        for _ in range(20):
            await asyncio.sleep(0)
        before = server.done
        await concurrency.each([server.take] * 3)
        assert server.done - before < 50
        await large

    asyncio.run(run())


def test_many_jobs_of_one_namespace_do_not_hold_up_another() -> None:
    """S-15: turns are by namespace first, then by job."""

    async def run() -> None:
        server, concurrency = Server(room=10_000), WriteConcurrency(first=4, most=4)
        flood = [
            asyncio.create_task(concurrency.each([server.take] * 300, "noisy")) for _ in range(32)
        ]
        for _ in range(20):
            await asyncio.sleep(0)
        before = server.done
        await concurrency.each([server.take] * 20, "quiet")
        assert server.done - before < 100
        await asyncio.gather(*flood)

    asyncio.run(run())


def test_a_job_of_ten_thousand_does_not_hold_up_the_loop() -> None:
    """C-1: nor make as many tasks."""

    async def run() -> None:
        server, concurrency = Server(room=10_000), WriteConcurrency(first=4, most=16)
        large = asyncio.create_task(concurrency.each([server.take] * 10_000))
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) <= 2 + 16
        assert sorted(map(str, await large)) == sorted(map(str, range(1, 10_001)))

    asyncio.run(run())


def test_one_that_is_cancelled_leaves_its_place_to_others() -> None:
    async def run() -> None:
        held: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        concurrency = WriteConcurrency(first=1, most=1)

        async def hold() -> int:
            await held
            return 0

        async def quick() -> int:
            return 1

        first = asyncio.create_task(concurrency.send(hold))
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(concurrency.send(quick)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        held.set_result(None)
        await first
        waiting[1].cancel()  # it may have its place already
        async with asyncio.timeout(5):
            assert await waiting[2] == 1
            assert await concurrency.send(quick) == 1

    asyncio.run(run())
