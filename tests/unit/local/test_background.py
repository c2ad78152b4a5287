"""What a supervisor in the background writes into its job's directory, and when."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from mpi_trainer.api.defaults import mpijob_with_defaults
from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.mpijob import MPIJobStatus
from mpi_trainer.decide.observed import Record
from mpi_trainer.diagnose.rank_lines import Line
from mpi_trainer.local.execute import reports, run
from mpi_trainer.local.execute.background import DirectoryClient
from mpi_trainer.local.execute.key_pairs import KeyPairProcess
from mpi_trainer.local.execute.supervisor_client import JobSnapshot
from mpi_trainer.local.jobs import logfile, store
from mpi_trainer.local.jobs.jobdir import JobDir, JobState
from mpi_trainer.local.paths import jobs_dir
from mpi_trainer.local.pods import syscalls
from mpi_trainer.sdk.job.new import NewJob

replace = msgspec.structs.replace
NOW = datetime(2026, 1, 1, tzinfo=UTC)
JOB = mpijob_with_defaults(NewJob("job", ("true",)).mpijob())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobDir:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return made_in(jobs_dir() / "default" / "job")


def made_in(path: Path) -> JobDir:
    folder = JobDir(path)
    path.mkdir(parents=True)
    folder.write_job(JOB)
    folder.write_state(
        JobState(created=NOW, workers=2, slots=1, implementation="MPICH", queued=1.0)
    )
    return folder


@pytest.fixture
def desk(folder: JobDir) -> Iterator[DirectoryClient]:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    yield DirectoryClient(folder, reader)
    os.close(reader)
    os.close(writer)


def ended(kind: str) -> MPIJobStatus:
    done = c.Condition(type=kind, status=c.TRUE, reason="Done", message="")
    return MPIJobStatus(conditions=c.with_condition((), done, NOW))


def line(text: str) -> Line:
    return Line("job-launcher", "launcher", "stdout", 0, text)


def test_clients_can_wake_a_supervisor_before_it_reads_its_job(
    folder: JobDir, desk: DirectoryClient
) -> None:
    """Else an order in between would be in a job.json that is not read again."""
    assert folder.state().supervisor == os.getpid()


def test_a_job_that_wants_nothing_leaves_the_queue(folder: JobDir, desk: DirectoryClient) -> None:
    assert not desk.admitted(wanted=False)
    assert folder.state().queued is None
    assert desk.admitted(wanted=True)
    assert folder.state().admitted
    assert desk.admitted(wanted=True)
    assert not desk.admitted(wanted=False)
    assert (folder.state().admitted, folder.state().queued) == (False, None)


def test_a_failure_while_clearing_away_does_not_undo_an_end(
    folder: JobDir, desk: DirectoryClient
) -> None:
    desk.save(JobSnapshot(replace(JOB, status=ended(c.SUCCEEDED)), Record(), (), ()))
    desk.failed("a cgroup could not be removed")
    assert c.state(folder.state().status.conditions) == c.SUCCEEDED
    assert not c.holds(folder.state().status.conditions, c.FAILED)


def test_a_job_that_could_not_be_run_failed(folder: JobDir, desk: DirectoryClient) -> None:
    desk.failed("there is no such directory")
    assert c.state(folder.state().status.conditions) == c.FAILED


def test_the_last_progress_is_kept_however_soon_it_follows(
    folder: JobDir, desk: DirectoryClient
) -> None:
    for step in range(1, 11):
        desk.report([line(f"step {step}/10")])
    desk.closed()
    progress = folder.state().progress
    assert progress is not None and progress.step == 10


def test_progress_is_kept_when_the_clock_was_set_back(
    folder: JobDir, desk: DirectoryClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.report([line("step 1/10")])
    clock, running = time.time(), time.monotonic()
    monkeypatch.setattr(time, "time", lambda: clock - 3600)
    monkeypatch.setattr(time, "monotonic", lambda: running + 2)
    desk.report([line("step 2/10")])
    progress = folder.state().progress
    assert progress is not None and progress.step == 2


def test_lines_belong_to_the_attempt_that_was_kept_last(
    folder: JobDir, desk: DirectoryClient
) -> None:
    desk.report([line("first")])
    desk.save(JobSnapshot(JOB, Record(attempt=2), (), ()))
    desk.report([line("second")])
    found = [(e.attempt, e.text) for _, e in logfile.LogReader(folder.path).read()]
    assert found == [(1, "first"), (2, "second")]


def test_orders_of_a_directory_that_is_gone_are_to_end_at_once(
    folder: JobDir, desk: DirectoryClient
) -> None:
    assert not desk.orders().stop
    (folder.path / "job.json").unlink()
    assert desk.orders().kill


def test_a_remover_who_is_late_leaves_a_new_job_of_the_name_alone(folder: JobDir) -> None:
    with store._held(folder) as old:
        folder.path.rename(folder.path.with_name(".gone-by-another"))
        made_in(folder.path)
        store._take_away(folder, old)
    assert folder.job().name == "job"


@pytest.mark.parametrize("at_once", [True, False])
def test_a_job_takes_the_place_of_another(
    folder: JobDir, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    """Not every file system can exchange two directories."""

    def refuse(one: str, other: str) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    if not at_once:
        monkeypatch.setattr(syscalls, "exchange", refuse)
    fresh = made_in(folder.path.with_name(".new-one"))
    fresh.write_state(replace(fresh.state(), workers=7))
    store._exchange(fresh.path, folder.path)
    assert (folder.state().workers, fresh.state().workers) == (7, 2)


def test_a_deletion_that_lost_its_client_is_brought_to_its_end(folder: JobDir) -> None:
    asked = replace(JOB, metadata=replace(JOB.metadata, deletion_timestamp=NOW))
    folder.write_job(asked)
    assert list(store.states()) == []
    assert not folder.path.exists()


def test_a_signal_reaches_no_process_that_has_inherited_the_number(folder: JobDir) -> None:
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    life = folder.lock_alive()
    try:
        folder.write_state(replace(folder.state(), supervisor=child))
        store.wake_supervisor(folder)
        assert os.waitpid(child, os.WNOHANG) == (0, 0)
    finally:
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        if life is not None:
            os.close(life)


@pytest.mark.parametrize(
    ("namespace", "name"),
    [("default", "../default/job"), ("", "default"), ("default", ""), ("..", "jobs"), (".", "job")],
)
def test_a_name_that_is_a_path_names_no_job(folder: JobDir, namespace: str, name: str) -> None:
    with pytest.raises(store.NoSuchJob):
        store.find(namespace, name)


def test_a_stray_file_beside_the_jobs_is_no_job(folder: JobDir) -> None:
    folder.path.with_name("notes.txt").write_text("mine")
    assert [each.name for each in store.folders()] == ["job"]


def test_what_a_killed_client_left_is_cleared_after_an_hour(folder: JobDir) -> None:
    young, old = (folder.path.with_name(f".new-{word}") for word in ("young", "old"))
    young.mkdir()
    old.mkdir()
    os.utime(old, (0, 0))
    store.clear_leftovers()
    assert (young.exists(), old.exists(), folder.path.exists()) == (True, False, True)


def test_a_report_that_was_torn_means_that_the_supervisor_was_lost() -> None:
    ours, theirs = socket.socketpair()
    whole = reports.encode([reports.Note("one"), reports.Note("two")])
    theirs.sendall(whole[:-5])
    theirs.close()
    heard: list[reports.Report] = []
    with ours:
        last = run._follow(ours, heard.append)
    assert heard == [reports.Note("one")]
    assert isinstance(last, reports.JobEnded) and last.reason == "SupervisorLost"


def test_a_maker_of_keys_does_not_outlive_its_supervisor() -> None:
    """It holds the lock that says that the supervisor lives."""
    reader, writer = os.pipe()
    supervisor = os.fork()
    if supervisor == 0:
        with suppress(BaseException):
            os.write(writer, b"%d" % KeyPairProcess(100_000)._child)
            signal.pause()
        os._exit(1)
    maker = os.pidfd_open(int(os.read(reader, 32)))
    os.kill(supervisor, signal.SIGKILL)
    os.waitpid(supervisor, 0)
    os.close(reader)
    os.close(writer)
    gone = bool(select.select([maker], [], [], 5.0)[0])
    if not gone:
        signal.pidfd_send_signal(maker, signal.SIGKILL)
    os.close(maker)
    assert gone
