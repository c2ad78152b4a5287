"""The SDK on the real local backend: real MPI, real supervisors, nothing left (AC-7, SC-004)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from openshift_ai_sdk.training import MPIJob, TrainingClient, VolumeMount
from tests import sdkexample
from tests.lifecycle import (
    PATIENCE,
    test_attempts_are_as_the_policy_says,
    test_closure_that_cannot_be_shipped_creates_nothing,
    test_everything_works_inside_a_running_loop,
    test_failure_is_told_at_once_with_rank_and_reason,
    test_followed_lines_come_as_they_are_written,
    test_job_deleted_while_somebody_follows_ends_the_following,
    test_job_that_does_not_exist_is_named,
    test_life_of_a_job,
    test_life_of_a_job_asynchronously,
    test_progress_is_shown_while_waiting,
    test_reader_that_stops_reading_ends_its_own_reading_only,
    test_two_clients_at_once_see_one_truth,
    test_wait_that_is_over_leaves_the_job_running,
    train,
)
from tools import sdkdocs

__all__ = [
    "test_attempts_are_as_the_policy_says",
    "test_closure_that_cannot_be_shipped_creates_nothing",
    "test_everything_works_inside_a_running_loop",
    "test_failure_is_told_at_once_with_rank_and_reason",
    "test_followed_lines_come_as_they_are_written",
    "test_job_deleted_while_somebody_follows_ends_the_following",
    "test_job_that_does_not_exist_is_named",
    "test_life_of_a_job",
    "test_life_of_a_job_asynchronously",
    "test_progress_is_shown_while_waiting",
    "test_reader_that_stops_reading_ends_its_own_reading_only",
    "test_two_clients_at_once_see_one_truth",
    "test_wait_that_is_over_leaves_the_job_running",
]

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(autouse=True)
def jobs_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for jobs that nobody else uses; whatever a test left in it is deleted."""
    monkeypatch.setenv("MPI_TRAINER_BACKEND", "local")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield tmp_path
    client = TrainingClient()
    for job in client.list_jobs(all_namespaces=True):
        client.delete_job(job.key.name, job.key.namespace)
    assert not [*tmp_path.glob("**/job.json")]


def test_program_of_the_specification_runs_as_it_is(tmp_path: Path) -> None:
    """Issue: `examples/sdk/job.py`; `tests/e2e/test_sdk.py` runs it on a cluster."""
    data = sdkexample.write_numbers(tmp_path / "data")
    nobodys = f"test-{os.getpid()}"  # a namespace where no claim of this name can be
    sizes = ("--workers", "2", "--cpu", "0.25", "--memory", "128Mi", "--gpu", "0")
    few = (*sizes, "--namespace", nobodys)
    unknown = sdkexample.run_example(*few)
    assert unknown.returncode == 1
    assert "volume training-data not found" in unknown.stderr
    assert "MPI_TRAINER_CLAIMS=training-data=/path/to/it" in unknown.stderr
    assert TrainingClient().list_jobs(all_namespaces=True) == ()
    sdkexample.demand_success(
        sdkexample.run_example(*few, MPI_TRAINER_CLAIMS=f"training-data={data}"), workers=2
    )
    again = sdkexample.run_example(*few, MPI_TRAINER_CLAIMS=f"training-data={data}")
    assert f"job {nobodys}/example already exists" in again.stderr


def test_failed_job_is_a_word_and_a_wait_that_is_over_a_timeout() -> None:
    job = MPIJob("bad", workers=1, command=["sh", "-c", "echo dying; exit 3"]).create()
    assert job.wait_for_completion(timeout=PATIENCE) == "Failed" == job.get_status()
    assert "dying\n" in job.get_logs() and job.get_logs(tail=1).count("\n") == 1
    with pytest.raises(RuntimeError, match="failed"):
        job.wait(timeout=PATIENCE)
    long = MPIJob("long", workers=1, command=["sleep", "1000"]).create()
    with pytest.raises(TimeoutError, match=r"has not ended within 0\.2 seconds"):
        long.wait_for_completion(timeout=0.2)
    with pytest.raises(LookupError, match="job default/nobody not found on this machine"):
        MPIJob.get("nobody", "default")


def test_job_that_exists_is_refused_and_untouched() -> None:
    job = MPIJob("once", command=["true"]).create()
    with pytest.raises(ValueError, match="default/once already exists"):
        MPIJob("once", command=["false"]).create()
    assert job.wait(timeout=PATIENCE).succeeded
    assert MPIJob("once", "elsewhere", command=["true"]).create().namespace == "elsewhere"
    assert TrainingClient().list_jobs().names == ["once"]
    assert {*TrainingClient().list_jobs(all_namespaces=True).names} == {"once"}


@pytest.mark.parametrize("mpi", ["OpenMPI", "MPICH", "Intel"])
def test_function_s_text_survives_every_mpi(mpi: str) -> None:
    """Quotes, dollars, backslashes and line ends pass through mpirun, ssh and a wrapper."""
    text = "$HOME `id` $(id) 'a' \"b\" \\n é %d {x} *"
    job = MPIJob.from_function(train, args=[1], kwargs={"text": text}, mpi=mpi).create()
    job.wait(timeout=PATIENCE)
    for rank in range(2):
        assert [*job.logs(rank=rank)][-1].text.endswith(text)


@pytest.mark.parametrize("mpi", ["OpenMPI", "MPICH", "Intel"])
def test_function_s_exception_is_the_job_s_message(mpi: str) -> None:
    """W-6: not MPI_ABORT's banner."""

    def fails() -> None:
        from mpi4py import MPI

        if MPI.COMM_WORLD.rank == 1:
            raise ValueError("bad learning rate")
        MPI.COMM_WORLD.barrier()

    job = MPIJob.from_function(fails, mpi=mpi).create()
    with pytest.raises(RuntimeError, match=r"rank 1 on .* raised ValueError: bad learning rate"):
        job.wait(timeout=PATIENCE)
    (ended,) = job.describe().attempts
    assert ended.rank == 1 and "ValueError: bad learning rate" in ended.words[0].text


def test_variables_and_volumes_reach_every_rank(tmp_path: Path) -> None:
    """CTL-14."""
    folder = tmp_path / "shared"
    folder.mkdir()

    def write() -> None:
        import os
        from pathlib import Path

        from mpi4py import MPI

        Path(f"/out/{MPI.COMM_WORLD.rank}").write_text(os.environ["SEED"])

    job = MPIJob.from_function(
        write,
        workers=3,
        env={"SEED": "4 $(HOME)"},
        volume_mounts=[VolumeMount("/out", host_path=str(folder))],
    ).create()
    job.wait(timeout=PATIENCE)
    assert {p.name: p.read_text() for p in folder.iterdir()} == dict.fromkeys("012", "4 $(HOME)")


def test_code_in_the_docs_runs() -> None:
    [code] = re.findall(r"```python\n(from .*?)```", sdkdocs.PAGE.read_text(), re.DOTALL)
    path = Path(os.environ["XDG_STATE_HOME"], "docs_example.py")
    path.write_text(code)
    exec(compile(code, str(path), "exec"), {"__name__": "docs"})
    assert TrainingClient().list_jobs() == ()


def test_folder_is_the_job_s_working_directory(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("ANSWER = 42\n")

    def work() -> None:
        import mine  # type: ignore[import-not-found]

        print(f"the answer is {mine.ANSWER}", flush=True)

    job = MPIJob.from_function(work, workdir=str(tmp_path)).create()
    job.wait(timeout=PATIENCE)
    said = [line.text for line in job.logs() if line.rank is not None]
    assert said == ["the answer is 42"] * 2
