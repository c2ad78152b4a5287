"""Jobs in the background under orders that come at bad moments, and on machines that run short."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.annotations import RESTARTS
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.local.jobs import store
from mpi_trainer.sdk.backends.backend import JobView, Key, LogQuery
from mpi_trainer.sdk.backends.local.backend import LocalBackend
from mpi_trainer.sdk.errors import JobError, JobNotFound
from mpi_trainer.sdk.job.new import NewJob
from mpi_trainer.sdk.job.specs import ResourceRequirements
from tests.local.odh import MARK, Census, assert_nothing_left, until

replace = msgspec.structs.replace

ROOT = Path(__file__).parents[2]
WAIT = "echo up; sleep 600"
MOST_RESIDENT = 30 << 10  # KiB


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield
    for folder in store.folders():
        store.remove(folder)


def job(name: str, script: str, *, workers: int = 1, mark: str = "", backoff: int = 0) -> MPIJob:
    """A shell script as launcher, so that the ranks of an MPI take no time."""
    return NewJob(
        name,
        ("sh", "-c", script),
        workers=workers,
        implementation="MPICH",
        backoff_limit=backoff,
        env=((MARK, mark),) if mark else (),
        resources=ResourceRequirements(cpu="100m", memory="64Mi"),
        as_is=True,
    ).mpijob()


def whole_machine(made: MPIJob) -> MPIJob:
    """The job as one that leaves no room for another."""
    content = made.launcher.template.content
    needs = {"requests": {"cpu": str(os.cpu_count() or 1)}}
    content["spec"]["containers"][0]["resources"] = needs
    template = type(made.launcher.template).of(content)
    replicas = {**(made.spec.mpi_replica_specs or {})}
    replicas["Launcher"] = replace(made.launcher, template=template)
    return replace(made, spec=replace(made.spec, mpi_replica_specs=replicas))


def suspended(made: MPIJob) -> MPIJob:
    policy = replace(made.spec.run_policy, suspend=True)
    return replace(made, spec=replace(made.spec, run_policy=policy))


def key(name: str) -> Key:
    return Key("default", name)


def state(name: str) -> str:
    return LocalBackend().get_now(key(name)).state


def comes_to(name: str, wanted: str) -> None:
    until(f"{name} is {wanted}", lambda: state(name) == wanted)


def printed(name: str) -> list[str]:
    async def read() -> list[str]:
        return [line.text async for line in LocalBackend().logs(key(name), LogQuery())]

    return asyncio.run(read())


def waits_for(name: str) -> str:
    return store.find("default", name).state().waits_for


def test_a_job_that_is_created_suspended_holds_up_nobody() -> None:
    backend = LocalBackend()
    backend.create_now(suspended(job("rests", WAIT)))
    backend.create_now(job("next", "true"))
    comes_to("next", c.SUCCEEDED)
    assert state("rests") == c.SUSPENDED


def test_a_job_that_is_suspended_in_the_queue_gives_its_place_up() -> None:
    backend = LocalBackend()
    for name, script in (("holds", WAIT), ("queued", WAIT), ("later", "true")):
        backend.create_now(whole_machine(job(name, script)))
    until("it waits", lambda: waits_for("queued"))
    asyncio.run(backend.suspend(key("queued")))
    comes_to("queued", c.SUSPENDED)
    asyncio.run(backend.delete(key("holds")))
    comes_to("later", c.SUCCEEDED)
    asyncio.run(backend.resume(key("queued")))
    comes_to("queued", c.RUNNING)


def test_orders_are_heard_at_every_moment_of_a_start() -> None:
    """SIGUSR1 kills whoever is not ready for it, and an order before that must not be lost."""
    backend = LocalBackend()
    moments = {f"early-{i}": i / 10 for i in range(6)}
    for name, moment in moments.items():
        backend.create_now(job(name, WAIT))
        _order_after(moment, backend, name)
    for name in moments:
        comes_to(name, c.SUSPENDED)
        asyncio.run(backend.resume(key(name)))
        comes_to(name, c.RUNNING)
        asyncio.run(backend.delete(key(name)))


def _order_after(seconds: float, backend: LocalBackend, name: str) -> None:
    async def order() -> None:
        await asyncio.sleep(seconds)
        await backend.suspend(key(name))

    asyncio.run(order())


def test_two_who_restart_a_running_job_both_come_back_and_it_runs() -> None:
    backend = LocalBackend()
    backend.create_now(job("again", WAIT))
    until("it has printed", lambda: "up" in printed("again"))

    async def both() -> None:
        await asyncio.gather(*(backend.restart(key("again")) for _ in range(2)))

    asyncio.run(asyncio.wait_for(both(), 100))
    comes_to("again", c.RUNNING)
    until("it has printed twice", lambda: printed("again").count("up") >= 2)


def test_two_who_restart_an_ended_job_make_one_of_it() -> None:
    backend = LocalBackend()
    backend.create_now(job("again", "echo up"))
    comes_to("again", c.SUCCEEDED)

    async def both() -> list[JobView]:
        return await asyncio.gather(*(backend.restart(key("again")) for _ in range(2)))

    restarted = asyncio.run(asyncio.wait_for(both(), 100))
    assert [made.annotations[RESTARTS] for made in restarted] == ["1", "1"]
    assert len({made.uid for made in restarted}) == 1
    comes_to("again", c.SUCCEEDED)


def test_a_restart_that_the_end_of_the_job_overtakes_runs_it_again() -> None:
    backend = LocalBackend()
    backend.create_now(job("again", "sleep 1; echo up"))
    comes_to("again", c.RUNNING)

    async def restart() -> None:
        await asyncio.sleep(0.9)
        await backend.restart(key("again"))

    asyncio.run(asyncio.wait_for(restart(), 100))
    comes_to("again", c.SUCCEEDED)


def test_whoever_follows_a_job_that_is_restarted_comes_to_the_end_of_the_old_one() -> None:
    backend = LocalBackend()
    backend.create_now(job("again", "echo up"))
    comes_to("again", c.SUCCEEDED)
    folder = store.find("default", "again")
    until("the supervisor has left", lambda: not folder.alive())

    async def follow() -> list[str]:
        lines = []
        async for line in backend.logs(key("again"), LogQuery(follow=True)):
            lines.append(line.text)
            store.remove(folder)
            backend.create_now(job("again", WAIT))
        return lines

    assert asyncio.run(asyncio.wait_for(follow(), 100)) == ["up"]


def test_a_quiet_job_ends_when_its_directory_is_removed_by_hand(tmp_path: Path) -> None:
    mark = tmp_path.name
    before = Census.take(mark)
    LocalBackend().create_now(job("orphan", WAIT, mark=mark))
    until("it runs", lambda: printed("orphan") == ["up"])
    folder = store.find("default", "orphan")
    shutil.rmtree(folder.path, ignore_errors=True)
    assert_nothing_left(mark, before)
    shutil.rmtree(folder.path, ignore_errors=True)
    with pytest.raises(JobNotFound):
        state("orphan")


def test_a_job_without_its_state_is_said_to_be_damaged_and_can_be_deleted() -> None:
    backend = LocalBackend()
    backend.create_now(job("hurt", "true"))
    comes_to("hurt", c.SUCCEEDED)
    folder = store.find("default", "hurt")
    until("the supervisor has left", lambda: not folder.alive())
    (folder.path / "state.json").unlink()
    (listed,) = backend.list_now()
    assert (listed.state, listed.reason) == (c.FAILED, "JobDirectoryDamaged")
    with pytest.raises(JobError, match="damaged"):
        backend.details_now(key("hurt"))
    asyncio.run(backend.delete(key("hurt")))
    assert backend.list_now() == []


def test_the_end_is_seen_with_all_that_led_to_it() -> None:
    """Whoever waits for the end finds the last progress and every line, each with its attempt."""
    backend = LocalBackend()
    script = "for i in 1 2 3 4; do echo step $i/4; done; exit 3"
    backend.create_now(job("steps", script, backoff=1))

    async def wait() -> list[tuple[int, str]]:
        async for _ in backend.watch(key("steps")):
            pass
        return [(x.attempt, x.text) async for x in backend.logs(key("steps"), LogQuery())]

    lines = asyncio.run(asyncio.wait_for(wait(), 60))
    steps = [(attempt, f"step {i}/4") for attempt in (1, 2) for i in (1, 2, 3, 4)]
    assert [line for line in lines if "step" in line[1]] == steps
    progress = backend.details_now(key("steps")).progress
    assert progress is not None and progress.step == 4


def test_every_attempt_can_be_read_alone_and_is_marked() -> None:
    """L-4, W-9: a line between attempts, and what became of each."""
    backend = LocalBackend()
    backend.create_now(job("tries", "echo trying; exit 3", backoff=1))
    comes_to("tries", c.FAILED)

    async def read(query: LogQuery) -> list[tuple[int, str, tuple[str, ...]]]:
        found = backend.logs(key("tries"), query)
        return [(x.attempt, x.text, x.notes) async for x in found if x.text == "trying"]

    message = "Launcher tries-launcher ended with exit code 3"
    mark = f"attempt 2 of 2: attempt 1 failed: {message}"
    both = [(1, "trying", ()), (2, "trying", (mark,))]
    assert asyncio.run(read(LogQuery())) == both
    assert asyncio.run(read(LogQuery(attempt=2))) == both[1:]
    assert asyncio.run(read(LogQuery(attempt=3))) == []
    attempts = backend.details_now(key("tries")).attempts
    assert [(one.attempt, one.message) for one in attempts] == [(1, message), (2, message)]
    assert all(one.began and one.ended and one.began <= one.ended for one in attempts)
    assert all("trying" in one.words[0].text for one in attempts)


def test_an_idle_supervisor_is_small() -> None:
    backend = LocalBackend()
    backend.create_now(job("idle", WAIT, workers=2))
    comes_to("idle", c.RUNNING)
    until("it has printed", lambda: printed("idle") == ["up"])
    supervisor = store.find("default", "idle").state().supervisor
    status = Path(f"/proc/{supervisor}/status").read_text()
    resident = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert resident is not None
    print(f"an idle supervisor of two workers: {int(resident[1]) / 1024:.1f} MiB")
    assert int(resident[1]) <= MOST_RESIDENT


ON_A_FULL_DISK = """
import asyncio, sys, time
from pathlib import Path
from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.local.jobs import store
from mpi_trainer.sdk.backends.backend import LogQuery
from mpi_trainer.sdk.backends.local.backend import LocalBackend
from tests.local.test_supervisor import comes_to, job, key
TALKS = "while seq 1 3000; do sleep 0.05; done"
backend = LocalBackend()
async def read():
    return [line async for line in backend.logs(key("talks"), LogQuery())]
try:
    backend.create_now(job("talks", "seq 1 300000; sleep 1; echo end; exit 5"))
    comes_to("talks", c.FAILED)
    while store.find("default", "talks").alive():
        time.sleep(0.1)
    seen = backend.details_now(key("talks"))
    failed = c.find(seen.job.conditions, c.FAILED)
    print("failed with", failed.reason)
    print("message:", failed.message)
    print("missing:", seen.missing)
    print("events:", [event.reason for event in seen.events])
    lines = asyncio.run(read())
    print("lines:", sum(1 + line.lost for line in lines) - 1, lines[-1].text)
    backend.create_now(job("waits", TALKS))
except OSError as error:
    print("refused:", error)
    asyncio.run(backend.delete(key("talks")))
    backend.create_now(job("waits", TALKS))
try:
    for _ in range(3):
        comes_to("waits", c.RUNNING)
        try:
            Path(sys.argv[1], "filler").write_bytes(bytes(1 << 20))
        except OSError as error:
            print("full:", error)
        time.sleep(0.5)
        asyncio.run(backend.suspend(key("waits")))
        comes_to("waits", c.SUSPENDED)
        asyncio.run(backend.resume(key("waits")))
    print("suspended and resumed")
finally:
    for folder in store.folders():
        store.remove(folder)
print("left:", [each.name for each in store.folders()])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_full_disk_costs_lines_but_neither_the_job_nor_orders_to_it(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    mounted = 'mount -t tmpfs -o size=512k tmpfs "$1" && exec "$2" -c "$3" "$1"'
    path = ":".join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    ran = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mounted, "sh", full, sys.executable, ON_A_FULL_DISK],
        env={**os.environ, "XDG_STATE_HOME": str(full), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "failed with LauncherPodFailed" in ran.stdout
    assert "full: " in ran.stdout
    counted = re.search(r"missing: (\d+) lines of output could not be kept: No space", ran.stdout)
    assert counted is not None, ran.stdout
    assert 100_000 < int(counted[1]) < 300_001
    assert f"{counted[1]} lines of output could not be kept" in ran.stdout.partition("missing:")[0]
    assert re.search(
        r"lines: 30000\d mpi-trainer: \d+ lines of output could not be kept", ran.stdout
    )
    assert ran.stdout.endswith("suspended and resumed\nleft: []\n")
