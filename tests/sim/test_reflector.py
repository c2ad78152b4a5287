"""The reflector against a server that misbehaves: the store always comes to agree with it."""

from __future__ import annotations

import asyncio
from typing import Literal

import msgspec
import pytest

from mpi_trainer.kube.client import Client
from mpi_trainer.kube.resources import CONFIGMAPS, PODS
from mpi_trainer.runtime import reflector
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.reflector import Reflector
from mpi_trainer.runtime.store import Store
from tests.sim.faults import Fault
from tests.sim.reflected import Hasty, Scene, Thing, play
from tests.sim.server import Server, key_of
from tests.sim.waiting import until


def test_a_store_is_filled_by_a_list_and_kept_by_a_watch() -> None:
    async def script(scene: Scene) -> None:
        assert scene.told == [("+a", True), ("+b", True)]
        scene.put("a", k="v")
        scene.put("c")
        scene.remove("b")
        await scene.agrees()
        assert scene.told[2:] == [("~a", False), ("+c", False), ("-b", False)]
        assert scene.store.get(Key("n", "b")) is None
        assert scene.reflector.lists == 1

    play(script)


def test_an_object_is_kept_for_as_long_as_its_fields_are_selected() -> None:
    """One that comes to be selected is new to the store, whatever its age."""

    def turn(server: Server, name: str, phase: str) -> None:
        server.objects.write(key_of(PODS, "n", name), {"status": {"phase": phase}}, "status")

    async def run() -> None:
        async with Server(bookmarks=0.1) as server, Hasty(server.config) as client:
            store: Store[Thing] = Store()
            fields = "status.phase!=Pending,status.phase!=Running"
            ended = Reflector(client, PODS, Thing, store, fields=fields)
            for name, phase in (("old", "Failed"), ("young", "Pending")):
                pod = {"metadata": {"name": name, "namespace": "n"}, "status": {"phase": phase}}
                server.put(PODS, pod)
            async with asyncio.TaskGroup() as group:
                running = group.create_task(ended.run())
                async with asyncio.timeout(25):
                    await ended.wait_synced()
                    assert [one.metadata.name for one in store] == ["old"]
                    turn(server, "young", "Running")
                    turn(server, "young", "Succeeded")
                    await until(lambda: len(store) == 2)
                    turn(server, "old", "Pending")
                    await until(lambda: [one.metadata.name for one in store] == ["young"])
                    assert ended.lists == 1
                running.cancel()

    asyncio.run(run())


def test_bookmarks_carry_the_version_on_while_nothing_happens() -> None:
    async def script(scene: Scene) -> None:
        scene.server.put(PODS, {"metadata": {"name": "p", "namespace": "n"}})
        await until(lambda: scene.store.version() == scene.server.objects.version)
        scene.server.objects.compact()
        scene.server.put(PODS, {"metadata": {"name": "q", "namespace": "n"}})
        await until(lambda: scene.store.version() == scene.server.objects.version)
        scene.server.cut_watches()
        scene.put("c")
        await scene.agrees()
        assert scene.reflector.lists == 1, "not too old, thanks to bookmarks"

    play(script)


def test_a_deletion_that_no_watch_showed_is_found_by_the_list_after_410() -> None:
    async def script(scene: Scene) -> None:
        scene.server.faults.append(Fault("answer", watch=True, code=503, reason="Away"))
        scene.server.cut_watches()
        scene.remove("a")
        scene.put("c")
        scene.server.objects.compact()
        await scene.agrees()
        assert scene.reflector.lists == 2
        assert scene.words == ["+a", "+b", "-a", "+c"]

    play(script)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("answer", watch=True, code=410, reason="Expired"),
        Fault("gone", after=1),
        Fault("error", code=504, reason="Timeout"),
    ],
    ids=["410 as an answer", "410 in the stream", "version too large"],
)
def test_a_watch_that_cannot_go_on_is_followed_by_a_list(fault: Fault) -> None:
    async def script(scene: Scene) -> None:
        scene.put("c")
        await until(lambda: scene.reflector.lists == 2)
        scene.put("d")
        scene.remove("a")
        await scene.agrees()
        assert sorted(scene.words) == ["+a", "+b", "+c", "+d", "-a"]

    play(script, fault)


def test_a_server_that_always_says_410_is_not_asked_in_a_hot_loop() -> None:
    async def script(scene: Scene) -> None:
        await asyncio.sleep(3)
        assert len(scene.server.requests) <= 8
        scene.server.faults.clear()
        scene.put("c")
        await scene.agrees()

    play(script, Fault("gone", times=1000))


@pytest.mark.parametrize(
    "fault",
    [
        Fault("answer", watch=True, code=429, reason="TooManyRequests", times=2),
        Fault("answer", watch=True, code=403, reason="Forbidden", times=2),
        Fault("answer", watch=True, code=401, reason="Unauthorized", times=2),
        Fault("page", watch=True, code=502, times=2),
        Fault("drop", watch=True, times=2),
        Fault("cut", after=1, times=2),
        Fault("silence", after=1),
        Fault("hang", watch=True),
    ],
    ids=lambda fault: f"{fault.kind}{fault.code if fault.kind in ('answer', 'page') else ''}",
)
def test_a_broken_watch_is_opened_again_and_nothing_is_lost_or_told_twice(fault: Fault) -> None:
    async def script(scene: Scene) -> None:
        scene.put("c")
        scene.put("a", k="v")
        scene.put("d")
        scene.remove("b")
        await scene.agrees()
        assert sorted(scene.words) == ["+a", "+b", "+c", "+d", "-b", "~a"]

    play(script, fault)


def test_watches_that_end_at_once_are_not_opened_in_a_hot_loop() -> None:
    async def script(scene: Scene) -> None:
        await asyncio.sleep(3)
        assert len(scene.server.requests) <= 8

    play(script, Fault("end", times=1000))


@pytest.mark.parametrize("kind", ["duplicate", "reorder"])
def test_doubled_and_swapped_events_do_no_harm(kind: Literal["duplicate", "reorder"]) -> None:
    async def script(scene: Scene) -> None:
        for number in range(10):
            scene.put("a", k=str(number))
            scene.put(f"x{number}")
            scene.remove(f"x{number}")  # an odd number of events, so that any two are swapped
        scene.remove("a")
        scene.put("end")
        await scene.agrees()
        assert scene.words.count("-a") == 1
        assert scene.words.count("~a") <= 10
        assert not [word for word in scene.words if word.startswith("~x")]
        gone = [word for word in scene.words if word.startswith("+x")]
        assert len(gone) == len(set(gone)), "nothing is brought back to life"

    play(script, Fault(kind, times=1000))


def test_a_429_storm_at_the_start_is_sat_out() -> None:
    async def script(scene: Scene) -> None:
        await scene.agrees()
        assert len(scene.server.requests) <= 8

    play(script, Fault("answer", code=429, reason="TooManyRequests", retry_after="1", times=4))


def test_a_list_that_hangs_is_given_up_and_made_again() -> None:
    async def script(scene: Scene) -> None:
        await scene.agrees()

    play(script, Fault("hang", watch=False))


def test_a_server_that_restarts_is_found_again_by_a_patient_reflector() -> None:
    async def script(scene: Scene) -> None:
        await scene.server.halt()
        scene.remove("a")
        scene.put("c")
        await asyncio.sleep(3)
        before = len(scene.server.requests)
        await scene.server.start()
        await scene.agrees()
        assert scene.reflector.watches <= 8, "it waits longer each time"
        assert before <= 6
        assert scene.words == ["+a", "+b", "-a", "+c"]

    play(script)


def test_an_object_that_cannot_be_read_does_not_hide_the_others() -> None:
    async def script(scene: Scene) -> None:
        scene.server.put(CONFIGMAPS, {"metadata": {"name": "a", "namespace": "n"}, "data": 7})
        scene.put("c")
        await until(lambda: "+c" in scene.words)
        assert scene.reflector.unreadable == 1
        await scene.reflector.refresh()
        assert scene.reflector.unreadable == 2
        assert scene.store.get(Key("n", "a")) is not None, "left as it was"
        scene.put("a", k="v")
        await scene.agrees()
        scene.server.put(CONFIGMAPS, {"metadata": {"name": "a", "namespace": "n"}, "data": 7})
        scene.remove("a")
        await scene.agrees()
        assert "-a" in scene.words, "its deletion needs no reading"

    play(script)


def test_an_object_nested_too_deeply_does_not_end_the_reflector() -> None:
    """S-3: 1,100 levels in one object; the others are served by list and by watch."""

    async def script(scene: Scene) -> None:
        whole = msgspec.Raw(b'{"a":' * 1100 + b"1" + b"}" * 1100)
        deep = {"metadata": {"name": "deep", "namespace": "n"}, "data": {}, "spec": whole}
        scene.server.put(CONFIGMAPS, deep)
        scene.put("c")
        await until(lambda: "+c" in scene.words)
        assert scene.reflector.unreadable == 1
        await scene.reflector.refresh()
        assert scene.reflector.unreadable == 2
        assert [name for name, _ in scene.unreadable] == ["deep", "deep"]
        assert "nested too deeply" in scene.unreadable[0][1]
        scene.put("d")
        await until(lambda: "+d" in scene.words)
        assert scene.store.get(Key("n", "deep")) is None

    play(script)


def test_refresh_returns_after_a_list_that_began_later() -> None:
    async def script(scene: Scene) -> None:
        scene.server.faults.append(Fault("silence", times=1000))
        scene.server.cut_watches()
        await until(lambda: scene.reflector.watches >= 2)
        scene.put("c")
        await asyncio.gather(scene.reflector.refresh(), scene.reflector.refresh())
        assert "c" in scene.seen()

    play(script)


def test_refresh_during_a_list_is_answered_before_the_next_watch() -> None:
    """C-6: a new leader does not wait for a quiet watch to end, which takes minutes."""

    async def script(scene: Scene) -> None:
        scene.server.faults += [
            Fault("late", watch=False, seconds=0.4),  # the list is on its way for a while
            Fault("silence", watch=True, times=1000),
        ]
        lists = scene.reflector.lists
        first = asyncio.create_task(scene.reflector.refresh())
        await asyncio.sleep(0.2)
        async with asyncio.timeout(8):
            await asyncio.gather(first, scene.reflector.refresh())
        assert scene.reflector.lists == lists + 2

    play(script, silence=20, answer=20)


def test_a_silent_watch_is_no_failure() -> None:
    """C-15: a server that sends no bookmarks is watched anew at once, however often."""

    async def script(scene: Scene) -> None:
        scene.server.faults.append(Fault("silence", watch=True, times=1000))
        scene.server.cut_watches()
        before = scene.reflector.watches
        async with asyncio.timeout(9):
            await until(lambda: scene.reflector.watches >= before + 6)

    play(script, silence=1.1)


def test_what_is_known_already_is_not_kept_twice() -> None:
    """C-1: a list of what has not changed costs no memory and tells nobody."""

    async def script(scene: Scene) -> None:
        before = {id(one) for one in scene.store}
        await scene.reflector.refresh()
        assert {id(one) for one in scene.store} == before
        assert scene.words == ["+a", "+b"]

    play(script)


def test_a_slow_full_list_repairs_and_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server lost is found, and what did not change is looked at again, calmly."""
    monkeypatch.setattr(reflector, "RELIST_SECONDS", 1.0)

    async def script(scene: Scene) -> None:
        del scene.store._values[Key("n", "b")]  # as if its event had been lost
        await until(lambda: scene.reflector.lists >= 2)
        assert sorted(scene.told[2:4]) == [("+b", True), ("~a", True)]
        await scene.agrees()

    play(script)


def test_a_fault_in_a_handler_does_not_stop_the_reflector() -> None:
    async def script(scene: Scene) -> None:
        def fail(old: object, new: object) -> None:
            raise RuntimeError("a fault of the controller")

        scene.reflector._on_change = fail
        scene.put("c")
        scene.put("d")
        await scene.agrees()

    play(script)


def test_one_namespace_is_watched_without_rights_to_others() -> None:
    async def run() -> None:
        async with Server(bookmarks=0.1) as server, Client(server.config) as client:
            for namespace in ("m", "n"):
                server.put(CONFIGMAPS, {"metadata": {"name": "a", "namespace": namespace}})
            store: Store[Thing] = Store()
            one = Reflector(client, CONFIGMAPS, Thing, store, namespace="n", labels="!skip")
            async with asyncio.TaskGroup() as group:
                running = group.create_task(one.run())
                async with asyncio.timeout(10):
                    await one.wait_synced()
                    await until(lambda: len(server.requests) == 2)
                running.cancel()
            assert [thing.metadata.namespace for thing in store] == ["n"]
            assert {one.path for one in server.requests} == {"/api/v1/namespaces/n/configmaps"}
            assert {one.query["labelSelector"] for one in server.requests} == {"!skip"}

    asyncio.run(run())
