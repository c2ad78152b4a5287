"""A job in a few words: rows, progress, plain data, the live view."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from mpi_trainer.api.kinds.conditions import Condition
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.mpijob import MPIJob, MPIJobStatus
from mpi_trainer.cli.output import formatting
from mpi_trainer.cli.output.live_view import view
from mpi_trainer.cli.verbs.mpijob.exec import pod_of, pod_of_rank
from mpi_trainer.cli.verbs.mpijob.following import rank_table
from mpi_trainer.cli.verbs.mpijob.stack import grouped
from mpi_trainer.diagnose.progress import Progress
from mpi_trainer.sdk.backends.backend import JobDetails, JobSummary, Key, LogLine, PodInfo, RankInfo
from mpi_trainer.sdk.backends.views import mpijob_view
from mpi_trainer.sdk.errors import JobError

NOW = datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC)
JOB = JobSummary(
    key=Key("default", "train"),
    state="Running",
    created=NOW - timedelta(minutes=5),
    reason="MPIJobRunning",
    message="two\nlines",
    started=NOW - timedelta(minutes=4),
    workers=2,
    slots=4,
    implementation="OpenMPI",
    progress=Progress(step=9, total=20, unit="epoch", metrics={"val_loss": 0.5}),
)
DETAILS = JobDetails(
    job=mpijob_view(
        MPIJob(
            metadata=ObjectMeta(name="train", namespace="default", creation_timestamp=NOW),
            status=MPIJobStatus(
                conditions=(Condition(type="Running", status="True", message="It runs."),),
                start_time=NOW - timedelta(seconds=90),
            ),
        ),
        {},
    ),
    pods=(
        PodInfo("train-launcher", "launcher", 0, "Running", True),
        PodInfo("train-worker-0", "worker", 0, "Running", False),
        PodInfo("train-worker-1", "worker", 1, "Running", True),
    ),
    ranks=(
        RankInfo(0, "train-worker-0", "10.0.0.2", 7, ""),
        RankInfo(1, "train-worker-1", "", 7, "exit code 3"),
    ),
    progress=Progress(step=5, total=10, unit="step", eta_seconds=60, at=NOW.timestamp() - 10),
)


def test_a_row_says_where_the_job_stands() -> None:
    row = formatting.row(JOB, NOW, wide=False, everywhere=False)
    assert row == ("train", "Running", "2", "45% epoch 9/20", "5m", "4m")
    assert len(row) == len(formatting.columns(wide=False, everywhere=False))


def test_a_wide_row_adds_where_and_why_on_one_line() -> None:
    row = formatting.row(JOB, NOW, wide=True, everywhere=True)
    assert row[0] == "default"
    assert row[-4:] == ("4", "OpenMPI", "MPIJobRunning", "two lines")
    assert len(row) == len(formatting.columns(wide=True, everywhere=True))


def test_data_keep_the_names_of_metrics_and_leave_out_what_is_unknown() -> None:
    data = formatting.data(JOB)
    assert data["progress"]["metrics"] == {"val_loss": 0.5}
    assert data["created"] == "2026-11-15T11:55:00Z"
    assert "completed" not in data
    msgspec.json.encode(data)


@pytest.mark.parametrize(
    ("progress", "wanted"),
    [
        (None, ""),
        (Progress(metrics={"loss": 1.0}), ""),
        (Progress(step=7, unit="step"), "step 7"),
        (Progress(step=25, total=100, unit="%"), "25%"),
        (Progress(step=45, total=100, unit="epoch 3"), "epoch 3 45%"),
        (Progress(step=2.5, total=20, unit="epoch"), "12% epoch 2.5/20"),
        (Progress(step=3, total=20), "15% step 3/20"),
    ],
)
def test_progress_in_words(progress: Progress | None, wanted: str) -> None:
    assert formatting.progress_words(progress) == wanted


def test_remaining_time_runs_on_between_two_lines() -> None:
    progress = Progress(step=1, total=2, eta_seconds=60, at=1000.0)
    assert formatting.eta_words(progress, 1010.0) == "50s"
    assert formatting.eta_words(progress, 2000.0) == "0s"
    assert formatting.eta_words(Progress(step=1), 0.0) == ""


def test_the_live_view_shows_state_progress_ranks_and_last_lines() -> None:
    lines = [LogLine(NOW, "train-launcher", "stdout", 0, "step 5/10\x1b[2J\r" + "x" * 500)]
    shown = view(DETAILS, lines, NOW, 60, 24)
    assert shown[0].startswith("train Running  1m30s  50% step 5/10")
    assert any("50%  50s left" in line and "█" in line for line in shown)
    assert any("train-worker-0" in line and "Starting" in line for line in shown)
    assert any("ranks 1 (exit code 3)" in line for line in shown)
    assert shown[-1].startswith("[0] step 5/10")
    assert all(len(line) <= 60 and line.isprintable() for line in shown)


def test_many_pods_are_counted_instead_of_listed() -> None:
    pods = tuple(PodInfo(f"w-{i}", "worker", i, "Running", True) for i in range(100))
    shown = view(msgspec.structs.replace(DETAILS, pods=pods), [], NOW, 80, 40)
    assert "  and 88 Running" in shown
    assert len(shown) < 24


@pytest.mark.parametrize("height", range(1, 40))
def test_the_live_view_keeps_its_first_line_in_a_small_window(height: int) -> None:
    lines = [LogLine(NOW, "train-launcher", "stdout", 0, f"step {n}") for n in range(8)]
    pods = tuple(PodInfo(f"w-{i}", "worker", i, "Running", True) for i in range(12))
    shown = view(msgspec.structs.replace(DETAILS, pods=pods), lines, NOW, 80, height)
    assert len(shown) <= height
    assert shown[0].startswith("train Running")
    if height > 20:
        assert shown[-1] == "[0] step 7", "the newest line is the last that goes"


def test_a_rank_names_its_pod() -> None:
    key, places = Key("default", "train"), {0: "train-worker-0", 1: "train-worker-1"}
    assert pod_of_rank(key, 1, places) == "train-worker-1"
    assert pod_of(DETAILS, 0) == "train-worker-0"
    assert pod_of(DETAILS, None) == "train-launcher"
    with pytest.raises(JobError, match="no rank 9"):
        pod_of_rank(key, 9, places)
    with pytest.raises(JobError, match="no worker 7"):
        pod_of(DETAILS, 7)


def test_ranks_at_the_same_place_are_shown_together_the_loneliest_first() -> None:
    assert grouped({0: "wait", 1: "compute", 2: "wait"}) == [("compute", [1]), ("wait", [0, 2])]


def test_ranks_at_the_same_place_are_one_whatever_their_process_numbers() -> None:
    """L-4."""
    here = "Process {}: python x.py\nThread {} (active)\n    main (x.py:3)"
    there = "Process 9: python x.py\nThread 8 (active)\n    main (x.py:5)"
    assert grouped({0: here.format(1, 2), 1: here.format(3, "0x7F"), 2: there}) == [
        (there, [2]),
        ("Process: python x.py\nThread (active)\n    main (x.py:3)", [0, 1]),
    ]


def test_a_rank_table_of_many_ranks_has_those_that_failed() -> None:
    ranks = [
        RankInfo(n, f"w-{n}", "", 0, "signal 9 (SIGKILL)" if n % 2 else "exit code 0")
        for n in range(100)
    ]
    assert rank_table([]) == rank_table([RankInfo(0, "w-0", "", 7, "")]) == ""
    assert rank_table(ranks[:2]).splitlines()[1:] == [
        "0     w-0  exit code 0",
        "1     w-1  signal 9 (SIGKILL)",
    ]
    many = rank_table(ranks).splitlines()
    assert [line.split()[0] for line in many[1:3]] == ["1", "3"]
    assert many[-1] == "and 34 more"
