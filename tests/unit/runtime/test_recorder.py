"""Events are told once, counted after that, and never in anybody's way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mpi_trainer.kube.errors import Status, from_status
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.resources import EVENTS
from mpi_trainer.runtime.metrics import Metrics
from mpi_trainer.runtime.recorder import COMBINED, KNOWN, VARIANTS, EventSubject, Recorder, short
from tests.unit.runtime.fake_api_server import FakeApiServer
from tests.unit.runtime.fake_time import now, run_in_fake_time

JOB = EventSubject("kubeflow.org/v2beta1", "MPIJob", "n", "train", "uid-1")


class Scene:
    def __init__(self) -> None:
        self.server = FakeApiServer()
        self.metrics = Metrics()
        self.recorder = Recorder(self.server, "mpi-job-controller", "pod-1", self.metrics)

    def tell(
        self, message: str = "it runs", *, reason: str = "Running", about: EventSubject = JOB
    ) -> None:
        self.recorder.record(about, "Normal", reason, message)

    @property
    def events(self) -> list[Any]:
        return list(self.server.objects.objects.values())

    @property
    def dropped(self) -> float:
        value: float = self.metrics.events_dropped._value.get()
        return value


def tale(script: Callable[[Scene], Awaitable[None]]) -> None:
    async def scenario() -> None:
        scene = Scene()
        running = asyncio.ensure_future(scene.recorder.run())
        await script(scene)
        assert not running.done(), "the writer never ends by itself"
        running.cancel()

    run_in_fake_time(scenario())


def test_an_event_says_what_about_whom_and_by_whom() -> None:
    async def script(scene: Scene) -> None:
        scene.tell()
        await asyncio.sleep(1)
        (event,) = scene.events
        assert event["involvedObject"] == {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "namespace": "n",
            "name": "train",
            "uid": "uid-1",
        }
        assert (event["type"], event["reason"]) == ("Normal", "Running")
        assert (event["message"], event["count"]) == ("it runs", 1)
        assert event["source"] == {"component": "mpi-job-controller"}
        assert event["metadata"]["name"].startswith("train.")
        assert event["metadata"]["namespace"] == "n"

    tale(script)


def test_the_same_event_is_counted_and_written_at_most_every_ten_seconds() -> None:
    async def script(scene: Scene) -> None:
        for _ in range(100):
            scene.tell()
            await asyncio.sleep(0.3)
        await asyncio.sleep(30)
        (event,) = scene.events
        assert event["count"] == 100
        assert [r.method for r in scene.server.sent] == ["POST", "PATCH", "PATCH", "PATCH"]

    tale(script)


def test_the_same_event_much_later_is_a_new_one() -> None:
    async def script(scene: Scene) -> None:
        scene.tell()
        await asyncio.sleep(601)
        scene.tell()
        await asyncio.sleep(1)
        assert [event["count"] for event in scene.events] == [1, 1]

    tale(script)


def test_too_many_different_messages_of_one_reason_share_one_event() -> None:
    async def script(scene: Scene) -> None:
        for number in range(VARIANTS + 50):
            scene.tell(f"pod {number} is pending")
        scene.tell("other", reason="Other")
        await asyncio.sleep(60)
        combined = [e for e in scene.events if e["message"].startswith(COMBINED)]
        assert len(scene.events) == VARIANTS + 2
        assert [event["count"] for event in combined] == [50]
        assert combined[0]["message"] == f"{COMBINED}pod {VARIANTS + 49} is pending"

    tale(script)


def test_an_event_that_the_server_forgot_is_made_anew() -> None:
    async def script(scene: Scene) -> None:
        scene.tell()
        await asyncio.sleep(20)
        scene.server.objects.objects.clear()
        scene.tell()
        await asyncio.sleep(20)
        assert [event["count"] for event in scene.events] == [2]

    tale(script)


def test_an_outage_is_waited_for_a_little_and_then_events_are_dropped() -> None:
    async def script(scene: Scene) -> None:
        scene.server.mood = "refuses"
        scene.tell()
        await asyncio.sleep(1)
        scene.server.mood = "well"
        await asyncio.sleep(5)
        assert len(scene.events) == 1
        scene.server.mood = "refuses"
        scene.tell("lost")
        await asyncio.sleep(60)
        assert scene.dropped == 1
        scene.server.mood = "well"
        await asyncio.sleep(60)
        assert len(scene.events) == 1

    tale(script)


@pytest.mark.parametrize(("code", "tries"), [(403, 1), (422, 1), (429, 3), (500, 3)])
def test_a_refusal_is_repeated_only_where_that_may_help(code: int, tries: int) -> None:
    async def script(scene: Scene) -> None:
        request = Request("POST", EVENTS.path("n"))
        error = from_status(request, Status(code=code, reason="Odd"))
        scene.server.failures = [error] * tries
        scene.tell()
        await asyncio.sleep(60)
        assert len(scene.server.sent) == tries
        assert scene.dropped == 1

    tale(script)


def test_a_fault_of_the_program_does_not_end_the_writer() -> None:
    async def script(scene: Scene) -> None:
        scene.server.failures = [RuntimeError("a fault")]
        scene.tell("first")
        scene.tell("second")
        await asyncio.sleep(5)
        assert [event["message"] for event in scene.events] == ["second"]

    tale(script)


def test_an_answer_that_was_lost_does_not_double_an_event() -> None:
    async def script(scene: Scene) -> None:
        scene.server.mood = "loses"
        scene.tell()
        await asyncio.sleep(1)
        scene.server.mood = "well"
        await asyncio.sleep(30)
        assert len(scene.events) == 1
        assert scene.dropped == 0

    tale(script)


def test_recording_never_waits_and_holds_a_bounded_number() -> None:
    async def script(scene: Scene) -> None:
        scene.server.mood = "hangs"
        before = now()
        for number in range(KNOWN + 100):
            scene.tell(about=EventSubject("v1", "Pod", "n", f"p{number}", f"uid-{number}"))
        assert now() == before
        assert len(scene.recorder._entries) == KNOWN
        assert scene.dropped == 100
        assert len(scene.recorder._variants) == KNOWN

    tale(script)


def test_what_is_left_is_written_at_the_end_in_bounded_time() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.tell()
        await scene.recorder.flush(3.0)
        assert len(scene.events) == 1
        scene.tell("another")
        scene.server.mood = "hangs"
        before = now()
        await scene.recorder.flush(3.0)
        assert now() - before <= 3.1

    run_in_fake_time(scenario())


def test_messages_are_cut_at_1024_bytes_between_characters_and_hold_no_keys() -> None:
    assert short("x" * 1024) == "x" * 1024
    cut = short("ä" * 1000)
    assert len(cut.encode()) <= 1024
    assert cut.endswith("ä…")

    async def script(scene: Scene) -> None:
        scene.tell("-----BEGIN OPENSSH PRIVATE KEY-----\nabc")
        await asyncio.sleep(1)
        assert scene.events[0]["message"] == "[redacted]"

    tale(script)


def test_a_very_long_name_still_gives_a_valid_name() -> None:
    async def script(scene: Scene) -> None:
        scene.tell(about=EventSubject("v1", "Pod", "n", "a" * 199 + "-" + "b" * 50, "u"))
        await asyncio.sleep(1)
        name = scene.events[0]["metadata"]["name"]
        assert name.startswith("a" * 199 + ".")
        assert len(name) <= 253

    tale(script)
