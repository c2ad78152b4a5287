"""Leader election in jumping time: never two who may write, whatever hangs."""

from __future__ import annotations

import asyncio

import pytest

from mpi_trainer.kube.resources import LEASES
from mpi_trainer.runtime.leases import Claim, Elector, LeaseLost
from mpi_trainer.runtime.metrics import Metrics
from tests.sim.server import key_of
from tests.unit.runtime.fake_api_server import FakeApiServer
from tests.unit.runtime.fake_time import now, run_in_fake_time

KEY = key_of(LEASES, "n", "lead")


def elector(server: FakeApiServer, who: str, chance: float = 0.0) -> Elector:
    claim = Claim("n", "lead", who)
    return Elector(server, claim, Metrics(), clock=now, chance=lambda: chance)


def holder(server: FakeApiServer) -> str:
    who: str = server.objects.get(KEY)["spec"]["holderIdentity"]
    return who


def test_the_first_takes_a_lease_that_does_not_exist_and_renews_it() -> None:
    async def scenario() -> None:
        server = FakeApiServer()
        one = elector(server, "one")
        assert (one.leading, one.remaining()) == (False, 0.0)
        await one.acquire()
        assert holder(server) == "one"
        keeping = asyncio.ensure_future(one.keep())
        await asyncio.sleep(3600)
        assert one.remaining() >= 8
        assert server.objects.get(KEY)["spec"]["leaseTransitions"] == 0
        writes = len(server.sent)
        await asyncio.sleep(10)
        assert len(server.sent) - writes == 5, "one request for each renewal"
        keeping.cancel()

    run_in_fake_time(scenario())


def test_a_standby_waits_a_whole_lease_from_when_it_first_saw_the_record() -> None:
    async def scenario() -> None:
        server = FakeApiServer()
        await elector(server, "one").acquire()
        await asyncio.sleep(14)
        began = now()
        two = elector(server.view(), "two")
        await two.acquire()
        assert 15 <= now() - began <= 17.1
        spec = server.objects.get(KEY)["spec"]
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("two", 1)

    run_in_fake_time(scenario())


def test_wrong_wall_clocks_do_not_matter() -> None:
    """A record whose renewTime is hours old is as good as any, while it changes."""

    async def scenario() -> None:
        server = FakeApiServer()
        one, two = elector(server, "one"), elector(server.view(), "two")
        await one.acquire()
        server.objects.get(KEY)["spec"]["renewTime"] = "1999-01-01T00:00:00.000000Z"
        keeping = asyncio.ensure_future(one.keep())
        waiting = asyncio.ensure_future(two.acquire())
        await asyncio.sleep(3600)
        assert not waiting.done()
        keeping.cancel()
        await waiting
        assert two.leading

    run_in_fake_time(scenario())


def test_a_hanging_server_ends_leadership_at_the_deadline_and_before_another_leads() -> None:
    async def scenario() -> None:
        first = FakeApiServer()
        one, two = elector(first, "one"), elector(first.view(), "two")
        await one.acquire()
        keeping = asyncio.ensure_future(one.keep())
        waiting = asyncio.ensure_future(two.acquire())
        await asyncio.sleep(20.1)
        first.mood = "hangs"
        began = now()
        with pytest.raises(LeaseLost, match="in time"):
            await keeping
        assert 8 <= now() - began <= 10
        assert one.remaining() == 0
        assert not one.leading
        assert not two.leading
        await waiting
        assert now() - began >= 15 - 2

    run_in_fake_time(scenario())


@pytest.mark.parametrize("chance", [0.0, 0.99])
@pytest.mark.parametrize("mood", ["hangs", "refuses", "loses"])
@pytest.mark.parametrize("moment", [0.0, 1.99, 3.7])
def test_never_two_have_time_to_write(mood: str, moment: float, chance: float) -> None:
    async def scenario() -> None:
        servers = [FakeApiServer()]
        servers.append(servers[0].view())
        servers[0].delay = 0.05
        one, two = elector(servers[0], "one"), elector(servers[1], "two", chance)
        await one.acquire()
        keeping = asyncio.ensure_future(one.keep())
        waiting = asyncio.ensure_future(two.acquire())
        await asyncio.sleep(30 + moment)
        servers[0].mood = mood  # type: ignore[assignment]
        both = 0
        for _ in range(600):
            await asyncio.sleep(0.05)
            both += one.remaining() > 0 and two.remaining() > 0
        assert both == 0
        if mood == "loses":
            # Every renewal is carried out and none is known of: safe, and the lease stays taken.
            assert not one.leading
        await waiting
        assert keeping.done()
        assert isinstance(keeping.exception(), LeaseLost)

    run_in_fake_time(scenario())


def test_a_lost_answer_is_made_up_for_by_reading_the_lease() -> None:
    async def scenario() -> None:
        server = FakeApiServer()
        one = elector(server, "one")
        await one.acquire()
        keeping = asyncio.ensure_future(one.keep())
        await asyncio.sleep(3)
        server.mood = "loses"
        await asyncio.sleep(2)
        server.mood = "well"
        await asyncio.sleep(100)
        assert one.remaining() >= 8
        assert one._metrics.lease_slow_path.labels("lead")._value.get() == 1
        keeping.cancel()

    run_in_fake_time(scenario())


def test_a_short_outage_does_not_cost_the_lease() -> None:
    async def scenario() -> None:
        server = FakeApiServer()
        one = elector(server, "one")
        await one.acquire()
        keeping = asyncio.ensure_future(one.keep())
        await asyncio.sleep(2.5)
        server.mood = "hangs"
        await asyncio.sleep(4)
        server.mood = "well"
        await asyncio.sleep(60)
        assert not keeping.done()
        assert one.remaining() > 5
        keeping.cancel()

    run_in_fake_time(scenario())


def test_a_lease_that_another_took_or_deleted_is_lost_at_once() -> None:
    async def scenario(take: bool) -> None:
        server = FakeApiServer()
        one = elector(server, "one")
        await one.acquire()
        if take:
            lease = server.objects.get(KEY)
            spec = {**lease["spec"], "holderIdentity": "two"}
            server.objects.write(KEY, {**lease, "spec": spec})
        else:
            server.objects.delete(KEY)
        with pytest.raises(LeaseLost, match="held by two" if take else "deleted"):
            await one.keep()
        assert one.remaining() == 0

    run_in_fake_time(scenario(True))
    run_in_fake_time(scenario(False))


def test_a_released_lease_is_taken_at_once_and_not_written_by_the_old_leader() -> None:
    async def scenario() -> None:
        server = FakeApiServer()
        one, two = elector(server, "one"), elector(server.view(), "two")
        await one.acquire()
        waiting = asyncio.ensure_future(two.acquire())
        await asyncio.sleep(1)
        began = now()
        await one.release()
        assert one.remaining() == 0
        await waiting
        assert now() - began <= 2
        await one.release()
        assert holder(server) == "two"

    run_in_fake_time(scenario())


def test_a_release_after_a_renewal_that_was_cut_off_finds_the_lease_as_it_is() -> None:
    async def scenario() -> None:
        server = FakeApiServer()
        one = elector(server, "one")
        await one.acquire()
        keeping = asyncio.ensure_future(one.keep())
        await asyncio.sleep(1)
        server.mood = "loses"
        await asyncio.sleep(1.5)
        keeping.cancel()
        server.mood = "well"
        await one.release()
        assert holder(server) == ""

    run_in_fake_time(scenario())


def test_a_release_never_fails_and_never_takes_long() -> None:
    async def scenario() -> None:
        server = FakeApiServer()
        one = elector(server, "one")
        await one.acquire()
        server.mood = "hangs"
        began = now()
        await one.release()
        assert now() - began <= 2

    run_in_fake_time(scenario())


def test_a_take_over_whose_answer_was_lost_is_continued() -> None:
    async def scenario() -> None:
        server = FakeApiServer()
        server.mood = "loses"
        one = elector(server, "one")
        waiting = asyncio.ensure_future(one.acquire())
        await asyncio.sleep(1)
        assert (holder(server), one.remaining()) == ("one", 0.0)
        server.mood = "well"
        await waiting
        assert one.leading

    run_in_fake_time(scenario())


def test_an_answer_that_comes_after_the_deadline_does_not_make_a_leader() -> None:
    async def scenario() -> None:
        server = FakeApiServer()
        server.delay = 30
        one = elector(server, "one")
        waiting = asyncio.ensure_future(one.acquire())
        await asyncio.sleep(120)
        assert not one.leading
        waiting.cancel()

    run_in_fake_time(scenario())


def test_time_that_the_machine_slept_counts() -> None:
    async def scenario() -> None:
        slept = 0.0
        one = Elector(
            FakeApiServer(), Claim("n", "lead", "one"), Metrics(), clock=lambda: now() + slept
        )
        await one.acquire()
        slept = 3600.0
        assert one.remaining() == 0

    run_in_fake_time(scenario())


def test_lease_times_that_cannot_be_safe_are_refused() -> None:
    with pytest.raises(ValueError, match="longer than the renew deadline"):
        Claim("n", "lead", "one", lease=10, renew=10, retry=2)


def test_the_time_that_an_answer_takes_is_not_ours() -> None:
    async def scenario() -> None:
        server = FakeApiServer()
        server.delay = 3
        one = elector(server, "one")
        await one.acquire()
        assert one.remaining() == pytest.approx(7)
        keeping = asyncio.ensure_future(one.keep())
        await asyncio.sleep(5.001)
        assert one.remaining() == pytest.approx(7, abs=0.01)
        keeping.cancel()

    run_in_fake_time(scenario())


@pytest.mark.parametrize("exists", [False, True])
def test_of_many_that_try_at_once_one_leads(exists: bool) -> None:
    async def scenario() -> None:
        server = FakeApiServer()
        if exists:
            earlier = elector(server, "earlier")
            await earlier.acquire()
            await earlier.release()
        servers = [server.view() for _ in range(5)]
        for each in servers:
            each.delay = 0.1
        all_of_them = [elector(each, f"e{n}") for n, each in enumerate(servers)]
        waiting = [asyncio.ensure_future(each.acquire()) for each in all_of_them]
        await asyncio.sleep(8)
        assert [each.leading for each in all_of_them].count(True) == 1
        for task in waiting:
            task.cancel()

    run_in_fake_time(scenario())
