"""The fast answer to `list` and `get` is the same as the full commands', or none at all."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from mpi_trainer.api.kinds.conditions import STATES, Condition
from mpi_trainer.api.kinds.mpijob import MPIJobStatus
from mpi_trainer.cli import glance
from mpi_trainer.cli.app import odh
from mpi_trainer.diagnose.progress import Progress
from mpi_trainer.local.jobs.jobdir import JobDir, State
from mpi_trainer.local.paths import jobs_dir

AGO = datetime.now(UTC) - timedelta(days=3, minutes=30)
PROGRESS = (None, Progress(step=5, total=20, unit="epoch", metrics={"loss": 0.5}), Progress(step=7))


def stored(namespace: str, name: str, state: str, number: int) -> JobDir:
    folder = jobs_dir() / namespace / name
    folder.mkdir(parents=True)
    job = JobDir(folder)
    kinds = ("Created",) if state == "Created" else ("Created", "Running", state)
    conditions = tuple(
        Condition(type=kind, status="True" if kind != "Running" or kind == state else "False",
                  reason=f"Because{kind}", message=f"It is\n{kind}. " * 9)
        for kind in dict.fromkeys(kinds)
    )  # fmt: skip
    job.write_state(
        State(
            created=AGO + timedelta(hours=number),
            workers=number,
            slots=2,
            implementation="MPICH",
            status=MPIJobStatus(
                conditions=conditions,
                start_time=AGO if number % 2 else None,
                completion_time=AGO + timedelta(hours=1) if state in STATES[-2:] else None,
            ),
            progress=PROGRESS[number % len(PROGRESS)],
            waits_for="2 cores" if number == 2 else "",
        )
    )
    return job


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[JobDir]]:
    """One job in each state; those that have not ended are held, as by a supervisor."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    made = [stored("default", f"job-{i}", state, i) for i, state in enumerate(STATES)]
    made.append(stored("other", "elsewhere", "Succeeded", 9))
    held = [job.take_life() for job in made]
    yield made
    for descriptor in held:
        assert descriptor is not None
        os.close(descriptor)


def full(*words: str) -> str:
    """What the command itself prints; `--quiet` is more than the glance understands."""
    assert glance.answer([*words, "--quiet"]) is None
    return CliRunner().invoke(odh, [*words, "--quiet"]).stdout.rstrip("\n")


@pytest.mark.parametrize(
    "words",
    [
        ("mpijob", "list"),
        ("mpijob", "list", "-A"),
        ("mpijob", "list", "-o", "wide"),
        ("mpijob", "list", "-A", "-o", "wide"),
        ("mpijob", "list", "-n", "other", "-o", "name"),
        ("training", "list", "mpijob", "--namespace", "other"),
        ("training", "list"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("jobs")
def test_the_table_is_the_full_commands(words: tuple[str, ...]) -> None:
    assert glance.answer(list(words)) == full(*words)


@pytest.mark.usefixtures("jobs")
def test_every_state_is_in_the_table() -> None:
    table = glance.answer(["mpijob", "list"])
    assert table is not None
    assert [line.split()[1] for line in table.splitlines()[1:]] == [*reversed(STATES)]


@pytest.mark.usefixtures("jobs")
def test_get_keeps_the_order_of_the_names() -> None:
    table = glance.answer(["mpijob", "get", "job-5", "job-1"])
    assert table is not None
    assert [line.split()[0] for line in table.splitlines()] == ["NAME", "job-5", "job-1"]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("mpijob",),
        ("run", "list"),
        ("mpijob", "list", "--watch"),
        ("mpijob", "list", "-o", "json"),
        ("mpijob", "list", "-o"),
        ("mpijob", "list", "-n"),
        ("mpijob", "list", "-n", "../default"),
        ("mpijob", "list", "-n", "empty"),
        ("mpijob", "list", "--help"),
        ("mpijob", "list", "word"),
        ("mpijob", "get"),
        ("mpijob", "get", "missing"),
        ("mpijob", "get", "../other/elsewhere"),
        ("mpijob", "get", "job-1", "-A"),
        ("training", "list", "tfjob"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("jobs")
def test_what_is_not_plain_is_left_to_the_command(words: tuple[str, ...]) -> None:
    assert glance.answer(list(words)) is None


def test_a_job_that_lost_its_supervisor_is_left_to_the_command(jobs: list[JobDir]) -> None:
    job = stored("default", "orphan", "Running", 11)
    (job.path / "alive.lock").touch()
    assert glance.answer(["mpijob", "list"]) is None
    with (job.path / "alive.lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert glance.answer(["mpijob", "list"]) is not None


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b'{"created": 3}', b"\xff", b"null"])
def test_a_damaged_job_is_left_to_the_command(jobs: list[JobDir], damage: bytes) -> None:
    (jobs[0].path / "state.json").write_bytes(damage)
    assert glance.answer(["mpijob", "list"]) is None


def test_nothing_slow_is_imported() -> None:

    slow = {"click", "msgspec", "asyncio", "yaml", "inspect", "subprocess"}
    code = "import sys, mpi_trainer.cli.main, mpi_trainer.cli.glance; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert not slow & set(loaded.stdout.split())
