"""Following a job's log on a bad day: nothing twice, nothing lost in silence (issue: bad input)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import pytest

from mpi_trainer.api.kinds.annotations import ATTEMPTS
from mpi_trainer.decide import history
from mpi_trainer.decide.history import Attempt, LogTail
from mpi_trainer.kube.resources import MPIJOBS, PODS
from mpi_trainer.sdk.backends.backend import Key, LogLine, LogQuery
from mpi_trainer.sdk.backends.cluster import job_logs
from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend
from mpi_trainer.sdk.errors import JobFailed, K8sApiException
from mpi_trainer.sdk.job.events import until_finished
from mpi_trainer.sdk.job.state import job_failure
from tests.sim.faults import Fault
from tests.sim.node_logs import SPACE, Node

KEY = Key(SPACE, "pi")
FOLLOW = LogQuery(follow=True)
TWENTY = [f"line {number}" for number in range(20)]
Script = Callable[[Node, ClusterBackend, list[str]], Awaitable[None]]


def play(script: Script) -> list[str]:
    """What was said to the person meanwhile."""
    said: list[str] = []

    async def run() -> None:
        async with Node() as node:
            async with asyncio.timeout(30):
                await script(node, ClusterBackend(node.config, said.append), said)

    asyncio.run(run())
    return said


async def read(backend: ClusterBackend, query: LogQuery = FOLLOW) -> list[LogLine]:
    return [line async for line in backend.logs(KEY, query)]


async def so(fact: Callable[[], bool]) -> None:
    while not fact():  # noqa: ASYNC110 - a fact of a server, not an event
        await asyncio.sleep(0.01)


async def over(node: Node, name: str, state: str = "Succeeded") -> None:
    """The pod ends, and then the job."""
    await node.logs[name].end()
    node.pod(name, "Succeeded")
    node.job(state)


def test_following_waits_for_the_pod() -> None:
    async def script(node: Node, backend: ClusterBackend, said: list[str]) -> None:
        node.job()
        reading = asyncio.create_task(read(backend))
        await asyncio.sleep(0.3)  # it waits for a pod
        log = node.pod("one", "Pending")
        await asyncio.sleep(1.5)  # it waits for the container
        assert log.reads < 8, "it asks without a pause"
        node.pod("one", "Running")
        await log.write(*TWENTY)
        await over(node, "one")
        assert [line.text for line in await reading] == TWENTY

    assert play(script) == []


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.7, 2.5])
def test_broken_connections_lose_and_double_nothing(seconds: float) -> None:
    """Many lines of one second, or a second for each: the API goes on at whole seconds only."""

    async def script(node: Node, backend: ClusterBackend, said: list[str]) -> None:
        node.job("Running")
        log = node.pod("one", "Running")
        log.cuts_after = [1, 3, 4, 9, 9, 15]
        reading = asyncio.create_task(read(backend))
        for text in TWENTY:
            # The same text again and again is no reason to leave it out.
            await log.write(text, "same", seconds=seconds)
            await asyncio.sleep(0.01)
        while log.cuts_after:  # noqa: ASYNC110 - the reader comes back by itself
            await asyncio.sleep(0.05)
        await over(node, "one")
        lines = await reading
        assert [line.text for line in lines] == [t for x in TWENTY for t in (x, "same")]
        assert not any(line.notes for line in lines)
        assert log.reads > 6

    play(script)


def test_rotated_log_says_that_lines_are_gone() -> None:
    async def script(node: Node, backend: ClusterBackend, said: list[str]) -> None:
        node.job("Running")
        log = node.pod("one", "Running")
        log.cuts_after = [5]
        await log.write(*TWENTY[:5])
        reading = asyncio.create_task(read(backend))
        await so(lambda: not log.cuts_after)
        await asyncio.sleep(0.3)
        await log.rotate()
        await log.write(*TWENTY[10:], seconds=3)
        await over(node, "one")
        lines = await reading
        assert [line.text for line in lines] == TWENTY[:5] + TWENTY[10:]
        told = [(line.text, line.notes) for line in lines if line.notes]
        assert told == [("line 10", (job_logs.MISSING,))]

    play(script)


def test_restarted_container_s_last_words_come_first() -> None:
    """Upstream's launcher restarts in its pod (restartPolicy OnFailure)."""

    async def script(node: Node, backend: ClusterBackend, said: list[str]) -> None:
        node.job("Running")
        log = node.pod("one", "Running")
        await log.write("a", "b")
        reading = asyncio.create_task(read(backend))
        await asyncio.sleep(0.3)
        log.earlier = [*log.lines]
        await log.write("last words")
        log.earlier = log.lines
        await log.end()
        log.lines, log.ended = [], False
        node.pod("one", "Running", restarts=1)
        await log.write("new")
        await asyncio.sleep(0.5)
        await over(node, "one")
        node.pod("one", "Succeeded", restarts=1)
        assert [line.text for line in await reading] == ["a", "b", "last words", "new"]

    play(script)


def test_nodes_without_a_launcher_are_heard_at_once() -> None:
    """One that goes on for long does not hide what another says."""

    async def script(node: Node, backend: ClusterBackend, said: list[str]) -> None:
        node.nodes("zero", "one")
        heard: list[str] = []

        async def follow() -> None:
            async for line in backend.logs(KEY, FOLLOW):
                heard.append(line.text)

        reading = asyncio.create_task(follow())
        for name in ("one", "zero", "one"):
            await node.logs[name].write(f"{name} again")
            count = len(heard) + 1
            await so(lambda count=count: len(heard) == count)  # type: ignore[misc]
        for name in ("zero", "one"):
            await node.logs[name].end()
        node.nodes("zero", "one", state="Complete")
        await reading
        assert heard == ["one again", "zero again", "one again"]
        last = await read(backend, LogQuery(tail=2))
        assert len(last) == 2 and {line.text for line in last} == {"one again", "zero again"}

    play(script)


def test_an_attempt_tells_how_the_last_one_ended_before_the_job_is_seen_to_change() -> None:
    async def script(node: Node, backend: ClusterBackend, said: list[str]) -> None:
        node.job("Running")
        await node.pod("one", "Running").write("first")
        node.faults.append(Fault("silence", path="mpijobs"))
        async with aclosing(backend.logs(KEY, FOLLOW)) as lines:
            assert (await anext(lines)).text == "first"
            await node.logs["one"].end()
            node.pod("one", "Failed")
            failed = Attempt(1, "LauncherPodFailed", "exit code 1")
            node.job("Restarting", {ATTEMPTS: history.to_json((failed,)) or ""})
            await node.pod("two", "Running", attempt=2).write("second")
            line = await anext(lines)
        assert (line.text, line.attempt) == ("second", 2)
        assert line.notes == ("attempt 2 of 7: attempt 1 failed: exit code 1",)

    play(script)


def test_attempts_follow_each_other() -> None:
    async def script(node: Node, backend: ClusterBackend, said: list[str]) -> None:
        node.job("Running")
        await node.pod("one", "Running").write("first")
        reading = asyncio.create_task(read(backend))
        await asyncio.sleep(0.2)
        await node.logs["one"].end()
        node.pod("one", "Failed")
        failed = Attempt(1, "LauncherPodFailed", "exit code 1")
        node.job("Restarting", {ATTEMPTS: history.to_json((failed,)) or ""})
        await node.pod("two", "Running", attempt=2).write("second")
        await asyncio.sleep(0.5)
        await node.logs["two"].end()
        node.pod("two", "Succeeded", attempt=2)
        node.job("Succeeded")
        assert [(line.text, line.attempt, line.notes) for line in await reading] == [
            ("first", 1, ()),
            ("second", 2, ("attempt 2 of 7: attempt 1 failed: exit code 1",)),
        ]

    play(script)


def test_attempt_whose_pod_is_gone_gives_the_lines_that_were_kept() -> None:
    """W-7: not "1 lines are gone: the log is bounded"."""
    first = Attempt(
        1, "LauncherPodFailed", "exit code 1", words=(LogTail("one", "x\n[1,3]<stdout>:y"),)
    )
    second = Attempt(2, "WorkerPodFailed", "a worker was deleted", silence="it had not started")

    async def script(node: Node, backend: ClusterBackend, said: list[str]) -> None:
        node.job("Running", {ATTEMPTS: history.to_json((first, second)) or ""})
        await node.pod("three", "Running", attempt=3).write("a", "b")
        lines = await read(backend, LogQuery())
        assert [(line.text, line.rank, line.attempt) for line in lines] == [
            ("x", None, 1),
            ("y", 3, 1),
            ("a", None, 3),
            ("b", None, 3),
        ]
        assert [line.lost for line in lines] == [0, 0, 0, 0]
        assert [line.notes for line in lines] == [
            ("attempt 1 of 7: its pods are gone; its last lines were kept",),
            (),
            (
                "attempt 2 of 7: its pods are gone, and none of its lines were kept: it had not "
                "started",
                "attempt 3 of 7: attempt 2 failed: a worker was deleted",
            ),
            (),
        ]
        assert [x.text for x in await read(backend, LogQuery(attempt=1))] == ["x", "y"]
        assert [x.text for x in await read(backend, LogQuery(attempt=3, rank=0))] == []
        assert [x.text for x in await read(backend, LogQuery(tail=1))] == ["b"]

    play(script)


def test_line_of_five_megabytes_comes_whole() -> None:
    async def script(node: Node, backend: ClusterBackend, said: list[str]) -> None:
        node.job("Succeeded")
        log = node.pod("one", "Succeeded")
        await log.write("before", "[1,3]<stdout>:" + "x" * 5_000_000, "after")
        lines = await read(backend, LogQuery())
        assert [len(line.text) for line in lines] == [6, 5_000_000, 5]
        assert [line.rank for line in lines] == [None, 3, None]

    play(script)


def test_deleted_job_ends_the_following() -> None:
    async def script(node: Node, backend: ClusterBackend, said: list[str]) -> None:
        node.job("Running")
        log = node.pod("one", "Running")
        await log.write("a")
        reading = asyncio.create_task(read(backend))
        await so(lambda: bool(log.reads))
        await asyncio.sleep(0.3)
        node.remove(PODS, SPACE, "one")
        await log.end()
        node.remove(MPIJOBS, SPACE, "pi")
        assert [line.text for line in await reading] == ["a"]

    play(script)


def test_server_that_is_away_is_waited_for_with_a_word() -> None:
    """Logs and waits go on where they were."""

    async def script(node: Node, backend: ClusterBackend, said: list[str]) -> None:
        node.job("Running")
        log = node.pod("one", "Running")
        await log.write("a")
        reading = asyncio.create_task(read(backend))
        waiting = asyncio.create_task(until_finished(backend, KEY, None, None))
        await so(lambda: bool(log.reads) and len(node.sent("GET", "/pi")) > 1)
        await asyncio.sleep(0.3)
        await node.halt()
        await log.write("b")
        await asyncio.sleep(1.5)
        assert not reading.done() and not waiting.done()
        await node.start()
        await over(node, "one")
        assert [line.text for line in await reading] == ["a", "b"]
        assert (await waiting).succeeded

    said = play(script)
    assert len([text for text in said if "does not answer; waiting for it" in text]) == 1
    assert said[-1].endswith("answers again")


def test_login_that_expires_in_mid_watch_ends_the_wait_with_what_to_do() -> None:
    async def script(node: Node, backend: ClusterBackend, said: list[str]) -> None:
        node.job("Running")
        waiting = asyncio.create_task(until_finished(backend, KEY, None, None))
        await asyncio.sleep(0.3)
        node.faults.append(Fault("answer", code=401, reason="Unauthorized", times=100))
        node.cut_watches()
        with pytest.raises(K8sApiException, match="does not accept your login") as caught:
            await waiting
        assert caught.value.status == 401 and "Log in again" in caught.value.hint

    play(script)


def test_failure_is_heard_at_once_by_everybody() -> None:
    async def script(node: Node, backend: ClusterBackend, said: list[str]) -> None:
        node.job("Running")
        waits = [asyncio.create_task(until_finished(backend, KEY, 20, None)) for _ in range(50)]
        while len(node.sent("GET", "/pi")) < 50 or not any(  # noqa: ASYNC110 - clients act
            one.query.get("watch") for one in node.requests
        ):
            await asyncio.sleep(0.1)
        before = len(node.requests)
        await asyncio.sleep(1.0)
        assert len(node.requests) == before, "nobody asks while nothing happens"
        node.job("Failed")
        states = await asyncio.gather(*waits)
        assert all(isinstance(job_failure(state), JobFailed) for state in states)
        watches = [r for r in node.requests[:before] if r.query.get("watch")]
        assert len(watches) == 1, "fifty wait, one asks"

    play(script)
