"""A job's directory: whole files, honest about damage, and locks that die with their holder."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from mpi_trainer.api.defaults import mpijob_with_defaults
from mpi_trainer.local.execute.settings import LocalSettings
from mpi_trainer.local.jobs.jobdir import Damaged, JobDir, JobState, StoredEvent
from mpi_trainer.sdk.job.new import NewJob

replace = msgspec.structs.replace
NOW = datetime(2026, 1, 1, tzinfo=UTC)
STATE = JobState(created=NOW, workers=2, slots=1, implementation="MPICH")


@pytest.fixture
def folder(tmp_path: Path) -> JobDir:
    made = JobDir(tmp_path / "default" / "job")
    made.path.mkdir(parents=True)
    made.write_job(mpijob_with_defaults(NewJob("job", ("true",)).mpijob()))
    made.write_settings(LocalSettings(cwd="/", env=(("SECRET", "x"),)))
    made.write_state(STATE)
    return made


def forked(act: Callable[[], object]) -> int:
    """A real process that does this and then waits to be killed; it is ready on return."""
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            act()
            os.write(tell, b"!")
            signal.pause()
        os._exit(1)
    os.close(tell)
    assert os.read(ready, 1) == b"!"
    os.close(ready)
    return child


def killed(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_what_is_written_is_read_and_nobody_else_may(folder: JobDir) -> None:
    assert folder.state() == STATE
    assert folder.job().name == "job"
    assert (folder.namespace, folder.name) == ("default", "job")
    for file in folder.path.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file


def test_a_reader_never_sees_half_a_file_while_another_process_writes(folder: JobDir) -> None:
    sizes = ("x", "x" * 200_000)

    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            os.write(writer, b"!")
            while True:
                for text in sizes:
                    folder.write_state(replace(STATE, waits_for=text))
        os._exit(1)
    try:
        os.read(reader, 1)
        seen = {folder.state().waits_for for _ in range(500)}
    finally:
        killed(child)
        os.close(reader)
        os.close(writer)
    assert seen <= {"", *sizes}


@pytest.mark.parametrize("hurt", ["{", "", "[]", '{"created": 3}', "\xff"])
@pytest.mark.parametrize("name", ["job.json", "state.json", "settings.json"])
def test_a_damaged_file_is_named(folder: JobDir, name: str, hurt: str) -> None:
    (folder.path / name).write_bytes(hurt.encode("latin-1"))
    reads = {"job.json": folder.job, "state.json": folder.state, "settings.json": folder.settings}
    with pytest.raises(Damaged, match=name):
        reads[name]()


def test_a_file_that_is_missing_is_damage_but_a_job_that_is_gone_is_not(folder: JobDir) -> None:
    (folder.path / "state.json").unlink()
    with pytest.raises(Damaged, match=r"state\.json: No such file"):
        folder.state()
    with pytest.raises(FileNotFoundError):
        JobDir(folder.path.with_name("other")).state()


def test_a_file_that_is_a_directory_is_damage(folder: JobDir) -> None:
    (folder.path / "state.json").unlink()
    (folder.path / "state.json").mkdir()
    with pytest.raises(Damaged, match="directory"):
        folder.state()


def test_a_torn_event_costs_itself_only(folder: JobDir) -> None:
    event = StoredEvent(NOW, "Normal", "First", "")
    folder.add_event(event)
    with (folder.path / "events.jsonl").open("ab") as file:
        file.write(b'{"time": "2026')
    folder.add_event(replace(event, reason="Second"))
    assert [e.reason for e in folder.events()] == ["First", "Second"]


def test_the_lock_says_that_the_holder_lives_until_it_is_killed(folder: JobDir) -> None:
    assert not folder.alive()
    child = forked(folder.lock_alive)
    try:
        assert folder.alive()
        assert folder.lock_alive() is None
    finally:
        killed(child)
    assert not folder.alive()
    life = folder.lock_alive()
    assert life is not None
    os.close(life)


def test_a_lock_that_was_handed_on_lives_in_the_heir(folder: JobDir) -> None:
    life = folder.lock_alive()
    assert life is not None
    child = forked(lambda: None)
    try:
        os.close(life)
        assert folder.alive()
    finally:
        killed(child)
    assert not folder.alive()


def test_asking_whether_a_job_lives_takes_nothing_from_it(folder: JobDir) -> None:
    assert not JobDir(folder.path.with_name("other")).alive()
    for _ in range(3):
        assert not folder.alive()
    life = folder.lock_alive()
    assert life is not None
    os.close(life)


def test_edits_of_several_processes_are_all_kept(folder: JobDir) -> None:
    count, each = 4, 25

    def edit() -> None:
        for _ in range(each):
            with folder.edited():
                state = folder.state()
                folder.write_state(replace(state, workers=state.workers + 1))

    children = []
    for _ in range(count):
        child = os.fork()
        if child == 0:
            code = 1
            with suppress(BaseException):
                edit()
                code = 0
            os._exit(code)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * count
    assert folder.state().workers == STATE.workers + count * each
