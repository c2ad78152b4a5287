"""OBS-5: hours and GPU hours by namespace, queue and user, within a window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mpi_trainer.cli.verbs.usage import _csv
from mpi_trainer.sdk import team_usage
from mpi_trainer.sdk.backends.backend import JobSummary, Key
from mpi_trainer.sdk.team_usage import OTHERS, Report, Window

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
DAY = Window(NOON, NOON + timedelta(days=1))


def job(
    started: float | None, ended: float | None = None, gpus: int = 8, **more: str
) -> JobSummary:
    """Hours after the window's begin."""
    given = {"namespace": "team", "owner": "ada", "queue": "gpu", "state": "Succeeded"} | more
    began, over = (None if h is None else NOON + timedelta(hours=h) for h in (started, ended))
    return JobSummary(
        Key(given["namespace"], "train"),
        given["state"],
        began or NOON,
        started=began,
        completed=over,
        gpus=gpus,
        queue=given["queue"],
        owner=given["owner"],
    )


def report(*jobs: JobSummary, by: tuple[str, ...] = team_usage.GROUPS) -> Report:
    made = Report(DAY, by)
    made.add(jobs)
    return made


def test_hours_of_jobs_are_added_up_by_namespace_queue_and_user() -> None:
    rows = report(
        job(1, 3),
        job(4, 4.5, gpus=2, state="Failed"),
        job(0, 1, owner="bob"),
        job(0, 1, namespace="other", queue=""),
    ).rows()
    assert [(r.namespace, r.queue, r.user, r.jobs) for r in rows] == [
        ("team", "gpu", "ada", 2),
        ("other", "-", "ada", 1),
        ("team", "gpu", "bob", 1),
    ]
    assert (rows[0].succeeded, rows[0].failed) == (1, 1)
    assert (rows[0].hours, rows[0].gpu_hours) == (2.5, 17.0)


@pytest.mark.parametrize(
    ("started", "ended", "hours"),
    [(-5, 2, 2), (20, 40, 4), (-5, 100, 24), (2, None, 22), (None, None, 0)],
)
def test_only_what_lies_in_the_window_counts(
    started: float | None, ended: float | None, hours: float
) -> None:
    (row,) = report(job(started, ended)).rows()
    assert row.hours == hours


@pytest.mark.parametrize(("started", "ended"), [(-5, -1), (30, 31), (30, None)])
def test_jobs_outside_the_window_are_not_in_it(started: float, ended: float | None) -> None:
    assert report(job(started, ended)).rows() == []


def test_what_is_not_asked_for_is_added_up() -> None:
    (row,) = report(job(0, 1), job(0, 1, owner="bob"), by=("queue",)).rows()
    assert (row.namespace, row.queue, row.user, row.jobs) == ("", "gpu", "", 2)


def test_groups_are_bounded_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team_usage, "MOST_ROWS", 3)
    rows = report(*(job(0, 1, owner=f"u{n}") for n in range(10))).rows()
    assert len(rows) == 4
    assert sum(row.jobs for row in rows) == 10
    assert [row.jobs for row in rows if row.user == OTHERS] == [7]


def test_a_name_is_no_formula_of_a_spreadsheet_and_breaks_no_line() -> None:
    """Whoever may write a job may write its owner."""
    hostile = ['=HYPERLINK("http://x","y")', "+1", "@a", "a\nb,c", "x" * 5000]
    text = _csv(
        report(*(job(0, 1, owner=name) for name in hostile), by=("user",)).rows(), ("user",)
    )
    assert text.startswith("user,jobs,succeeded,failed,hours,gpu_hours\n")
    assert "\"'=HYPERLINK(" in text
    assert "\n'+1," in text and "\n'@a," in text
    assert max(map(len, text.splitlines())) < 300
