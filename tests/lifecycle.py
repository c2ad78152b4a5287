"""What every place that runs jobs does for the SDK's users: the same tests, wherever they run.

The folders of tests import these functions and give them a place by their own fixture: this
machine in `tests/local`, a real cluster in `tests/e2e`. Nothing here knows which it is; jobs go
where `connect()` finds (SC-004, AC-7, AC-8, AC-9).
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

from openshift_ai_sdk.training import (
    AsyncMPIJob,
    AsyncTrainingClient,
    JobExists,
    JobFailed,
    JobNotFound,
    JobTimeout,
    LogLine,
    MPIJob,
    MPIJobClient,
    MPIJobSpec,
    NotShippable,
    ReplicaSpec,
    ResourceRequirements,
    RunPolicy,
    TrainingClient,
)

PATIENCE = 200.0
T = TypeVar("T")


def until(what: str, probe: Callable[[], T], seconds: float = PATIENCE) -> T:
    deadline = time.monotonic() + seconds
    while not (answer := probe()):
        assert time.monotonic() < deadline, f"{what} within {seconds} s"
        time.sleep(0.05)  # a look; the loop has a deadline
    return answer


def train(epochs: int, pause: float = 0.0, text: str = "") -> None:
    import time

    from mpi4py import MPI

    world = MPI.COMM_WORLD
    for epoch in range(1, epochs + 1):
        loss = world.allreduce(1.0) / epoch
        if world.rank == 0:
            print(f"epoch {epoch}/{epochs} loss {loss:.3f}", flush=True)
        time.sleep(pause)
    print(f"rank {world.rank} of {world.size} on {MPI.Get_processor_name()} {text}", flush=True)


def broken(rank: int) -> None:
    from mpi4py import MPI

    if MPI.COMM_WORLD.rank == rank:
        raise ValueError("bad data in row 7")
    MPI.COMM_WORLD.barrier()


def endless(**kwargs: Any) -> MPIJob:
    return MPIJob.from_function(train, args=[100000, 0.05], slots=1, **kwargs).create()


def begun(job: MPIJob) -> None:
    until("the first epoch", lambda: any("epoch 1/" in line.text for line in job.logs()))


def test_life_of_a_job() -> None:
    """Create, watch, logs by rank, suspend, resume, restart, delete."""
    job = MPIJob.from_function(train, slots=2, args=[40, 0.1], name="life")
    assert job.create() is job
    begun(job)
    until("running", lambda: job.status.state == "Running")
    assert [p.role for p in job.describe().pods].count("worker") == 2

    job.suspend()
    until("suspended", lambda: job.status.state == "Suspended")
    until("no pods", lambda: not job.describe().pods)
    job.resume()
    last = job.wait(timeout=PATIENCE)
    assert last.succeeded and last.progress is not None and last.progress.fraction == 1.0
    assert job.get_metrics().metrics["loss"] == pytest.approx(4 / 40, abs=1e-3)

    said = {n: [*job.logs(rank=n)] for n in range(4)}
    for rank, lines in said.items():
        assert {line.rank for line in lines} == {rank}
        assert re.search(rf"rank {rank} of 4 on life-worker-{rank // 2}", lines[-1].text)
        assert last.started is not None and lines[-1].time >= last.started
    assert len([*job.logs(tail=3)]) == 3
    assert all("epoch 4" in line.text for line in job.logs(grep="epoch 4"))

    job.restart()
    assert not job.status.finished
    seen = [(state.state, state.progress and state.progress.step) for state in job.watch()]
    assert seen[-1] == ("Succeeded", 40.0)
    assert len({step for state, step in seen if state == "Running" and step}) > 1
    assert job.status.succeeded
    reasons = [event.reason for event in job.stream_events()]
    assert reasons[0] == "MPIJobCreated" and reasons[-1] == "MPIJobSucceeded"

    job.delete()
    with pytest.raises(JobNotFound, match=f"{job.namespace}/life"):
        job.get_status()


def test_life_of_a_job_asynchronously() -> None:
    async def live() -> None:
        client = AsyncTrainingClient()
        made = AsyncMPIJob.from_function(train, slots=1, args=[40, 0.05], name="life")
        job = await client.create_mpi_job(made)
        lines: list[LogLine] = []
        heard = asyncio.Event()

        async def follow() -> None:
            async for line in client.get_job_logs("life", follow=True):
                lines.append(line)
                heard.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(follow())
            await asyncio.wait_for(heard.wait(), PATIENCE)
            await job.suspend()
            await reached(job, "Suspended")
            await job.resume()
            assert (await client.wait_for_job_completion("life", timeout=PATIENCE)).succeeded
        assert {line.rank for line in lines if "rank " in line.text} == {0, 1}
        events = [event.reason async for event in client.stream_job_events("life")]
        assert "MPIJobSuspended" in events and events[-1] == "MPIJobSucceeded"

        await client.restart_job("life")
        assert (await job.wait(timeout=PATIENCE)).succeeded
        assert (await client.get_job_metrics("life")).metrics["loss"] > 0
        assert (await client.list_jobs()).names == ["life"]
        await client.delete_job("life")
        with pytest.raises(JobNotFound):
            await client.get_job("life")

    asyncio.run(live())


async def reached(job: AsyncMPIJob, state: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while (await job.status).state != state:  # noqa: ASYNC110 - another process acts
            await asyncio.sleep(0.05)


def test_failure_is_told_at_once_with_rank_and_reason() -> None:
    """SC-006: the exception names the job, the rank and its host; the log has the line."""
    job = MPIJob.from_function(broken, args=[3], slots=2).create()
    with pytest.raises(RuntimeError) as caught:
        job.wait(timeout=PATIENCE)
    error = caught.value
    assert isinstance(error, JobFailed) and error.reason
    assert f"rank 3 on {job.name}-worker-1" in str(error), error
    log = "\n".join(line.text for line in job.logs(rank=3))
    assert 'raise ValueError("bad data in row 7")' in log
    state = job.status
    assert state.failed and state.message in str(error)
    assert "Failed" in job._repr_html_()


def test_attempts_are_as_the_policy_says() -> None:
    job = MPIJob.from_function(broken, args=[0], run_policy=RunPolicy(backoff_limit=1)).create()

    def attempts() -> set[int]:
        return {line.attempt for line in job.logs(follow=True, grep="ValueError")}

    with ThreadPoolExecutor(1) as pool:
        followed = pool.submit(attempts)
        with pytest.raises(JobFailed, match="2 attempts failed"):
            job.wait(timeout=PATIENCE)
        assert followed.result(PATIENCE) == {1, 2}


def test_wait_that_is_over_leaves_the_job_running() -> None:
    job = endless()
    begun(job)
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"within 0.5 seconds; it is Running") as caught:
        job.wait(timeout=0.5)
    assert isinstance(caught.value, JobTimeout)
    assert time.monotonic() - start < 5
    assert job.status.state == "Running"


def test_everything_works_inside_a_running_loop() -> None:
    """A notebook's cell runs inside a loop; synchronous calls must not mind."""

    async def cell() -> list[str]:
        job = MPIJob.from_function(train, args=[2], slots=1).create()
        job.wait(timeout=PATIENCE)
        return [line.text for line in job.logs(rank=0, follow=True)]

    assert any("epoch 2/2" in line for line in asyncio.run(cell()))


def test_two_clients_at_once_see_one_truth() -> None:
    first, second = MPIJobClient(), TrainingClient()
    assert first.backend is not second.backend
    spec = MPIJobSpec(
        launcher=ReplicaSpec(command=["sh", "-c", "echo $((40+2)) '$HOME' $$"]),
        worker=ReplicaSpec(replicas=2, resources=ResourceRequirements(cpu="100m")),
    )

    def create(client: Any) -> str:
        make = client.create if isinstance(client, MPIJobClient) else client.create_mpi_job
        try:
            make(spec, name="same")
        except JobExists as error:
            return str(error)
        return "created"

    with ThreadPoolExecutor(2) as pool:
        answers = sorted(pool.map(create, (first, second)))
    assert answers == ["created", f"job {first.namespace}/same already exists"]
    one, other = first.wait("same", timeout=PATIENCE), second.get_job_status("same")
    assert (one.state, one.completed) == (other.state, other.completed)
    lines = [line.text for line in first.logs("same") if line.rank is not None]
    good = [line for line in lines if re.fullmatch(r"42 \$HOME \d+", line)]
    assert len(good) == len(lines) == 2, (one, lines)


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.get_job("nobody"),
        lambda client: client.get_job_status("nobody"),
        lambda client: client.delete_job("nobody"),
        lambda client: client.wait_for_job_completion("nobody"),
        lambda client: list(client.get_job_logs("nobody", follow=True)),
        lambda client: list(client.stream_job_events("nobody")),
        lambda client: client.suspend_job("nobody"),
        lambda client: client.restart_job("nobody"),
        lambda client: MPIJob.get("nobody"),
    ],
)
def test_job_that_does_not_exist_is_named(ask: Callable[[TrainingClient], Any]) -> None:
    client = TrainingClient()
    with pytest.raises(JobNotFound, match=f"{client.namespace}/nobody"):
        ask(client)


def test_job_deleted_while_somebody_follows_ends_the_following() -> None:
    job = endless()
    begun(job)
    seen: list[str] = []

    def follow() -> None:
        seen.extend(line.text for line in job.logs(follow=True))

    def wait() -> str:
        with pytest.raises(JobNotFound) as caught:
            MPIJob.get(job.name).wait(timeout=PATIENCE)
        return str(caught.value)

    follower = threading.Thread(target=follow)
    follower.start()
    with ThreadPoolExecutor(1) as pool:
        waiter = pool.submit(wait)
        until("it is followed", lambda: bool(seen) or not follower.is_alive())
        time.sleep(3)  # so that the other one waits as well
        MPIJob.get(job.name).delete()
        assert f"job {job.namespace}/{job.name} was deleted" in waiter.result(PATIENCE)
    follower.join(PATIENCE)
    assert not follower.is_alive()
    assert any("epoch 1/" in line for line in seen)


def test_reader_that_stops_reading_ends_its_own_reading_only() -> None:
    job = endless()
    for line in job.logs(follow=True):
        if "epoch 3/" in line.text:
            break
    assert job.status.state == "Running"


def test_closure_that_cannot_be_shipped_creates_nothing() -> None:
    rate = 0.1

    def work() -> None:
        print(rate)

    with pytest.raises(NotShippable, match=r"`work` uses `rate` in line 2 \(`print\(rate\)`\)"):
        MPIJob.from_function(work).create()
    assert TrainingClient().list_jobs() == ()


def test_progress_is_shown_while_waiting(capfd: pytest.CaptureFixture[str]) -> None:
    job = MPIJob.from_function(train, args=[30, 0.1], slots=1, name="shown").create()
    job.wait(timeout=PATIENCE, show=True)
    lines = capfd.readouterr().err.splitlines()
    assert lines[-1] == "shown: Succeeded"
    assert any(line.startswith("shown: Running") for line in lines)


def test_followed_lines_come_as_they_are_written() -> None:
    job = endless()

    async def first() -> LogLine:
        lines: AsyncIterator[LogLine] = (await AsyncMPIJob.get(job.name)).logs(follow=True)
        async for line in lines:
            return line
        raise AssertionError("no line came")

    async def limited() -> LogLine:
        return await asyncio.wait_for(first(), PATIENCE)

    assert "epoch 1/" in asyncio.run(limited()).text
