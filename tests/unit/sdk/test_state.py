"""Where a job stands, what it raises when it failed, and how both look (AC-8, SC-006)."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.api.kinds.conditions import Condition
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.mpijob import MPIJob, MPIJobStatus, ReplicaStatus
from mpi_trainer.diagnose.progress import Progress
from mpi_trainer.sdk.backends.backend import (
    JobDetails,
    JobSummary,
    JobView,
    Key,
    LogLine,
    PodInfo,
    ReplicaCount,
)
from mpi_trainer.sdk.backends.usage import GpuUsage, JobUsage, PodUsage
from mpi_trainer.sdk.backends.views import mpijob_view
from mpi_trainer.sdk.job import html, progress_line
from mpi_trainer.sdk.job.state import (
    JobList,
    JobState,
    details_state,
    job_failure,
    job_metrics,
    job_state,
)

KEY = Key("team", "train")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HALF = Progress(step=3, total=6, unit="epoch", eta_seconds=12.4, metrics={"loss": 0.25})


def job(*conditions: Condition, **status: Any) -> JobView:
    stored = MPIJob(
        metadata=ObjectMeta(name="train", namespace="team", creation_timestamp=NOW),
        status=MPIJobStatus(conditions=conditions, **status),
    )
    return mpijob_view(stored, {})


def failed_job() -> JobView:
    return job(
        Condition(type="Running", status="False"),
        Condition(type="Failed", status="True", reason="RankFailed", message="rank 3 ended"),
        start_time=NOW,
        completion_time=NOW + timedelta(seconds=90),
        replica_statuses={"Worker": ReplicaStatus(active=1, failed=1)},
    )


def test_state_says_what_where_and_why() -> None:
    state = job_state(failed_job())
    assert (state.name, state.namespace, state.state) == ("train", "team", "Failed")
    assert (state.reason, state.message) == ("RankFailed", "rank 3 ended")
    assert (state.finished, state.failed, state.succeeded) == (True, True, False)
    assert state.seconds == 90.0
    assert state.workers == ReplicaCount(0, active=1, failed=1)


def test_new_job_is_created_and_waits() -> None:
    state = details_state(JobDetails(job=job(), waits_for="2 CPUs", progress=None))
    assert (state.state, state.waits_for, state.finished) == ("Created", "2 CPUs", False)
    assert state.seconds is None


def test_failure_names_job_reason_and_message() -> None:
    error = job_failure(job_state(failed_job()))
    assert str(error) == "job team/train failed (RankFailed): rank 3 ended"
    assert isinstance(error, RuntimeError)
    assert error.reason == "RankFailed"
    assert "get_logs()" in error.hint


def test_metrics_are_the_last_values_and_what_the_pods_use() -> None:
    pods = tuple(PodInfo(f"w{n}", "worker", n, "Running", True, cpu_seconds=1.5) for n in range(2))
    running = JobDetails(job=job(start_time=NOW), pods=pods, progress=HALF)
    used = JobUsage(KEY, tuple(PodUsage(f"w{n}", 0.5, 2**20) for n in range(2)), "API", ("late",))
    metrics = job_metrics(running, used, NOW + timedelta(seconds=5))
    assert (metrics.metrics, metrics.seconds) == ({"loss": 0.25}, 5.0)
    assert (metrics.cpu_seconds, metrics.cpus, metrics.memory_bytes) == (3.0, 1.0, 2 * 2**20)
    assert (metrics.pods, metrics.source, metrics.notes) == (used.pods, "API", ("late",))


def test_metrics_of_a_job_that_has_ended_are_its_peak_and_how_long_it_ran() -> None:
    peaks = tuple(PodUsage(f"w{n}", peak_memory_bytes=n * 2**20) for n in range(3))
    ended = job_metrics(JobDetails(job=failed_job()), JobUsage(KEY, peaks), NOW + timedelta(days=1))
    assert (ended.seconds, ended.peak_memory_bytes) == (90.0, 2 * 2**20)
    assert (ended.cpus, ended.memory_bytes) == (None, None)
    gone = job_metrics(JobDetails(job=job()), None, NOW)
    assert (gone.metrics, gone.seconds, gone.cpu_seconds, gone.pods) == ({}, None, None, ())


@given(st.text(st.characters(codec="utf-8"), min_size=1).map(lambda text: f"<{text}>&'\""))
def test_nothing_that_a_job_says_becomes_markup(text: str) -> None:
    state = JobState(text, text, text, text, text, progress=HALF, waits_for=text)
    summary = JobSummary(Key(text, text), text, NOW, text, text, implementation=text)
    shown = "".join(
        (
            state._repr_html_(),
            html.job_card(text, [("MPI", text)], state),
            JobList([summary])._repr_html_(),
            html.metrics_table(
                job_metrics(
                    JobDetails(job=job(), progress=Progress(metrics={text: 1.0})),
                    JobUsage(
                        KEY, (PodUsage(text, gpus=(GpuUsage(text, text, 1.0),)),), text, (text,)
                    ),
                    NOW,
                )
            ),
        )
    )
    assert text not in shown
    assert "script" not in shown or "script" in text
    assert "src=" not in shown and "href=" not in shown


def test_list_of_jobs_is_a_table_and_a_tuple() -> None:
    jobs = JobList(JobSummary(Key("team", name), "Running", NOW) for name in ("b", "a"))
    assert jobs.names == ["b", "a"]
    assert jobs[0].key.name == "b"
    assert repr(jobs) == "team/b: Running\nteam/a: Running"
    assert jobs._repr_html_().count("<tr>") == 3
    assert JobList()._repr_html_() == "<i>no jobs</i>"


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (JobState("t", "n", "Running", progress=HALF), "t: Running, epoch 3/6 (50%), 12 s left"),
        (JobState("t", "n", "Created", waits_for="2 CPUs"), "t: Created, waits for 2 CPUs"),
        (JobState("t", "n", "Failed", message="rank 3"), "t: Failed: rank 3"),
        (JobState("t", "n", "Succeeded", progress=HALF), "t: Succeeded"),
        (JobState("t", "n", "Running", progress=Progress(step=7)), "t: Running, 7"),
    ],
)
def test_line_of_progress(state: JobState, text: str) -> None:
    assert progress_line.progress_text(state) == text


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_terminal_line_is_written_over_and_ended() -> None:
    terminal = _Terminal()
    show = progress_line.progress_display(terminal)
    show(JobState("t", "n", "Running"))
    show(JobState("t", "n", "Succeeded"))
    assert terminal.getvalue() == "\r\x1b[2Kt: Running\r\x1b[2Kt: Succeeded\n"


def test_file_gets_a_line_for_every_state_and_not_for_every_step() -> None:
    file = io.StringIO()
    show = progress_line.progress_display(file)
    for step in range(3):
        show(JobState("t", "n", "Running", progress=Progress(step=step)))
    show(JobState("t", "n", "Succeeded"))
    assert file.getvalue() == "t: Running, 0\nt: Succeeded\n"


def test_log_line_prints_as_its_rank_and_text() -> None:
    assert str(LogLine(NOW, "p", "stdout", 3, "hello")) == "[3] hello"
    assert str(LogLine(NOW, "p", "stdout", None, "hello")) == "hello"
