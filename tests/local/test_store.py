"""Jobs of this machine as files: many at once, damaged, and with their supervisor killed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.local.jobs import store
from mpi_trainer.sdk.backends.backend import Key, LogQuery
from mpi_trainer.sdk.backends.local.backend import LocalBackend
from mpi_trainer.sdk.errors import JobError, JobExists, JobNotFound
from mpi_trainer.sdk.job.new import NewJob
from tests.local.odh import MARK, Census, assert_nothing_left, until

JOBS = int(os.environ.get("JOBS", "8"))
HELLO = "from mpi4py import MPI; print('hello', MPI.COMM_WORLD.rank, flush=True)"
SLEEP = "from mpi4py import MPI; import time; print('up', flush=True); time.sleep(600)"


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv(MARK, tmp_path.name)
    yield
    for folder in store.folders():
        store.remove(folder)


def job(name: str, program: str, workers: int = 1, mark: str = "") -> MPIJob:
    command = ("python", "-c", program)
    env = ((MARK, mark),) if mark else ()
    new = NewJob(name, command, workers=workers, env=env, implementation="MPICH", backoff_limit=0)
    return new.mpijob()


def key(name: str) -> Key:
    return Key("default", name)


async def ended(backend: LocalBackend, name: str) -> str:
    async for each in backend.watch(key(name)):
        last = each
    return last.state


def test_many_jobs_at_once_all_succeed_a_few_at_a_time() -> None:
    backend = LocalBackend()
    most = 0

    async def all_of_them() -> list[str]:
        nonlocal most
        names = [f"job-{i}" for i in range(JOBS)]
        for name in names:
            await backend.create(job(name, HELLO))
        waiting = [asyncio.create_task(ended(backend, name)) for name in names]
        while not all(task.done() for task in waiting):
            running = [s for s in backend.list_now() if s.state == c.RUNNING]
            most = max(most, len(running))
            await asyncio.sleep(0.1)
        return [task.result() for task in waiting]

    assert asyncio.run(all_of_them()) == [c.SUCCEEDED] * JOBS
    assert 1 <= most <= (os.cpu_count() or 1)


@pytest.mark.parametrize("seed", range(int(os.environ.get("KILLS", "4"))))
def test_kill_9_of_the_supervisor_at_any_moment_leaves_nothing_and_tells_the_truth(
    seed: int, tmp_path: Path
) -> None:
    mark = f"{tmp_path.name}-{seed}"
    before = Census.take(mark)
    backend = LocalBackend()
    backend.create_now(job("victim", HELLO, workers=2, mark=mark))
    folder = store.find("default", "victim")
    supervisor = until("the supervisor has begun", lambda: folder.state().supervisor)
    time.sleep(random.Random(seed).uniform(0.0, 1.5))  # any moment of its life
    if folder.alive():
        os.kill(supervisor, signal.SIGKILL)
    until("its lock is free", lambda: not folder.alive())
    found = backend.get_now(key("victim"))
    state = found.state
    assert state in (c.SUCCEEDED, c.FAILED)
    if state == c.FAILED:
        verdict = c.find(found.conditions, c.FAILED)
        assert verdict is not None and verdict.reason == store.LOST
    assert_nothing_left(mark, before)


def test_a_job_whose_name_is_taken_is_refused() -> None:
    backend = LocalBackend()
    backend.create_now(job("twice", HELLO))
    with pytest.raises(JobExists, match="already exists"):
        backend.create_now(job("twice", HELLO))


def test_two_deleters_at_once_both_come_back() -> None:
    backend = LocalBackend()
    backend.create_now(job("doomed", SLEEP))

    async def both() -> None:
        await asyncio.gather(*(backend.delete(key("doomed")) for _ in range(2)))

    asyncio.run(both())
    with pytest.raises(JobNotFound):
        backend.get_now(key("doomed"))


def test_a_follower_ends_when_the_job_is_deleted() -> None:
    backend = LocalBackend()
    backend.create_now(job("gone", SLEEP))

    async def follow() -> list[str]:
        lines: list[str] = []
        async for line in backend.logs(key("gone"), LogQuery(follow=True)):
            if not lines:
                deleting = asyncio.create_task(backend.delete(key("gone")))
            lines.append(line.text)
        await deleting
        return lines

    assert asyncio.run(asyncio.wait_for(follow(), 60))[0] == "up"


@pytest.mark.parametrize("name", ["job.json", "state.json"])
def test_a_damaged_directory_is_said_to_be_and_can_be_deleted(name: str) -> None:
    backend = LocalBackend()
    backend.create_now(job("hurt", HELLO))
    asyncio.run(ended(backend, "hurt"))
    folder = store.find("default", "hurt")
    until("the supervisor has left", lambda: not folder.alive())
    (folder.path / name).write_text("{")
    with pytest.raises(JobError, match="damaged"):
        backend.get_now(key("hurt"))
    if name == "state.json":
        (listed,) = backend.list_now()
        assert (listed.state, listed.reason) == (c.FAILED, "JobDirectoryDamaged")
    asyncio.run(backend.delete(key("hurt")))
    assert backend.list_now() == []


def test_an_ended_job_is_gone_after_its_ttl() -> None:
    """AC-4"""
    backend = LocalBackend()
    new = job("brief", HELLO)
    from msgspec.structs import replace

    policy = replace(new.spec.run_policy, ttl_seconds_after_finished=0)
    backend.create_now(replace(new, spec=replace(new.spec, run_policy=policy)))
    until("it has gone", lambda: backend.list_now() == [])


def test_an_ended_job_has_no_active_pods() -> None:
    """API-5"""
    backend = LocalBackend()
    backend.create_now(job("done", HELLO, workers=2))
    asyncio.run(ended(backend, "done"))
    until("the supervisor has left", lambda: not store.find("default", "done").alive())
    counts = backend.get_now(key("done")).counts
    assert (counts.launcher.active, counts.launcher.succeeded) == (0, 1)
    assert (counts.workers.active, counts.workers.succeeded) == (0, 0)


def test_a_broken_job_fails_with_the_reason() -> None:
    backend = LocalBackend()
    from msgspec.structs import replace

    from mpi_trainer.local.execute.settings import current_settings

    there = replace(current_settings(), cwd="/nowhere/at/all")
    LocalBackend(there).create_now(job("lost", HELLO))
    assert asyncio.run(ended(backend, "lost")) == c.FAILED
    verdict = c.find(backend.get_now(key("lost")).conditions, c.FAILED)
    assert verdict is not None and "/nowhere/at/all" in verdict.message
