"""What becomes of a key after a look at it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from mpi_trainer.kube.errors import KubeError, Status, Unreachable, from_status
from mpi_trainer.kube.requests import Request
from mpi_trainer.runtime.backoff import Curve
from mpi_trainer.runtime.metrics import Metrics
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.workers import DONE, Result, Terminal, Workers, WorkerSettings
from mpi_trainer.runtime.workqueue import WorkQueue
from tests.unit.runtime.fake_time import now, run_in_fake_time

REQUEST = Request("PATCH", "/x")


def refusal(code: int, retry_after: float | None = None) -> KubeError:
    return from_status(REQUEST, Status(code=code, reason="Odd"), retry_after)


class Scene:
    """Workers that do what `script` says, one entry for each look."""

    def __init__(self, *script: Result | Exception | float) -> None:
        self.script = list(script)
        self.looks: list[float] = []
        self.began = now()
        self.metrics = Metrics()
        self.fresh = True
        self.queue: WorkQueue[str] = WorkQueue(
            curve=Curve(first=1, cap=100, spread=0), observer=self.metrics.queue("x")
        )
        self.workers = Workers(
            "x",
            self.queue,
            self.reconcile,
            self.metrics,
            fresh=lambda _: self.fresh,
            settings=WorkerSettings(workers=3),
        )

    async def reconcile(self, key: str) -> Result:
        self.looks.append(round(now() - self.began, 2))
        step = self.script.pop(0) if self.script else DONE
        if isinstance(step, Exception):
            raise step
        if isinstance(step, float):
            await asyncio.sleep(step)
            return DONE
        return step

    def count(self, name: str, **labels: str) -> float:
        value = self.metrics.registry.get_sample_value(
            f"controller_runtime_{name}", {"controller": "x", **labels}
        )
        assert value is not None
        return value


def tale(script: Callable[[Scene], Awaitable[None]], *steps: Result | Exception | float) -> None:
    async def scenario() -> None:
        scene = Scene(*steps)
        running = asyncio.ensure_future(scene.workers.run())
        await script(scene)
        scene.queue.close()
        await running

    run_in_fake_time(scenario())


def test_a_result_says_when_to_look_again() -> None:
    async def script(scene: Scene) -> None:
        scene.queue.add("a")
        await asyncio.sleep(1000)
        assert scene.looks == [0, 30]
        assert scene.count("reconcile_total", result="requeue_after") == 1
        assert scene.count("reconcile_total", result="success") == 1

    tale(script, Result(after=30))


def test_failures_wait_longer_and_success_forgives() -> None:
    async def script(scene: Scene) -> None:
        scene.queue.add("a")
        await asyncio.sleep(1000)
        assert scene.looks == [0, 1, 3, 7]
        assert scene.queue.failures("a") == 0
        assert scene.count("reconcile_errors_total") == 3
        assert scene.count("reconcile_panics_total") == 1

    tale(
        script,
        Unreachable(REQUEST, "connect", "no"),
        refusal(500),
        RuntimeError("a fault"),
    )


def test_overload_waits_as_long_as_the_server_asks_and_is_no_error() -> None:
    async def script(scene: Scene) -> None:
        scene.queue.add("a")
        await asyncio.sleep(1000)
        assert scene.looks == [0, 20, 22]
        assert scene.count("reconcile_errors_total") == 0
        assert scene.count("reconcile_total", result="requeue") == 2

    tale(script, refusal(429, 20.0), refusal(409))


def test_a_terminal_failure_is_not_repeated_until_something_happens() -> None:
    async def script(scene: Scene) -> None:
        scene.queue.add("a")
        await asyncio.sleep(5000)
        scene.queue.add("a")
        await asyncio.sleep(1)
        assert scene.looks == [0, 5000]
        assert scene.count("terminal_reconcile_errors_total") == 1

    tale(script, Terminal("never"))


def test_a_look_that_takes_too_long_is_ended_and_repeated() -> None:
    async def script(scene: Scene) -> None:
        scene.queue.add("a")
        await asyncio.sleep(300)
        assert scene.looks == [0, 61]
        assert scene.count("reconcile_timeouts_total") == 1
        assert scene.count("reconcile_panics_total") == 0

    tale(script, 100.0)


def test_a_key_is_not_looked_at_before_its_own_writes_are_seen() -> None:
    async def script(scene: Scene) -> None:
        scene.fresh = False
        scene.queue.add("a")
        await asyncio.sleep(5)
        assert scene.looks == []
        scene.fresh = True
        await asyncio.sleep(1)
        assert len(scene.looks) == 1

    tale(script)


def test_one_key_in_trouble_does_not_hold_up_others() -> None:
    async def script(scene: Scene) -> None:
        scene.queue.add("slow")
        scene.queue.add("b")
        scene.queue.add("c")
        await asyncio.sleep(1)
        assert scene.looks == [0, 0, 0]
        assert scene.count("active_workers") == 1

    tale(script, 50.0)


def test_closing_the_queue_lets_work_finish() -> None:
    async def scenario() -> None:
        scene = Scene(20.0)
        running = asyncio.ensure_future(scene.workers.run())
        scene.queue.add("a")
        await asyncio.sleep(1)
        scene.queue.add("b")
        scene.queue.close()
        await running
        assert now() - scene.began == pytest.approx(20)

    run_in_fake_time(scenario())


def test_workers_can_be_cancelled_at_once() -> None:
    async def scenario() -> None:
        scene = Scene(50.0)
        running = asyncio.ensure_future(scene.workers.run())
        scene.queue.add("a")
        await asyncio.sleep(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert now() - scene.began == pytest.approx(1)

    run_in_fake_time(scenario())


def test_the_event_loop_has_its_turn_between_looks() -> None:
    """C-1: looks that wait for nothing, by the thousand, must not hold up the lease."""

    async def scenario() -> None:
        scene = Scene()
        for number in range(300):
            scene.queue.add(str(number))
        turns = 0

        async def neighbour() -> None:
            nonlocal turns
            while len(scene.looks) < 300:
                turns += 1
                await asyncio.sleep(0)

        working = asyncio.create_task(scene.workers.run())
        await neighbour()
        assert turns >= 100, "three workers make at most three looks before it is its turn"
        scene.queue.close()
        await working

    run_in_fake_time(scenario())


def test_long_looks_of_one_namespace_leave_workers_to_others() -> None:
    """S-15: 32 jobs of thousands of workers each held every worker for a minute at a time."""

    async def scenario() -> None:
        looks: list[Key] = []
        most = 0

        async def reconcile(key: Key) -> Result:
            nonlocal most
            looks.append(key)
            if key.namespace == "flood":
                most = max(most, sum(1 for _ in queue.ages()))
                await asyncio.sleep(10.0)
            return DONE

        queue: WorkQueue[Key] = WorkQueue()
        workers = Workers("x", queue, reconcile, Metrics(), settings=WorkerSettings(workers=8))
        running = asyncio.ensure_future(workers.run())
        for number in range(20):
            queue.add(Key("flood", f"job-{number}"))
        await asyncio.sleep(1)
        assert most == 4, "half of them, as long as nobody else is there"
        for name in ("lab", "den"):
            queue.add(Key(name, "mine"))
            queue.add(Key(name, "old"), urgent=False)
        await asyncio.sleep(0.1)
        assert {key.namespace for key in looks} == {"flood", "lab", "den"}
        assert len(looks) == 4 + 4
        await asyncio.sleep(60)
        assert len(looks) == 24, "and nobody who waited for a place is forgotten"
        queue.close()
        await running

    run_in_fake_time(scenario())
