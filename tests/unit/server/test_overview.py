"""Figures of many jobs, as a page of them shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds import annotations as a
from mpi_trainer.sdk.backends.backend import JobSummary, Key
from mpi_trainer.sdk.backends.cluster.kinds import TRAINJOB
from mpi_trainer.sdk.backends.cluster.observed import view_summary
from mpi_trainer.server import paging
from mpi_trainer.server.overview import SHOWN, overview

NOW = datetime(2026, 1, 8, tzinfo=UTC)
HOUR = timedelta(hours=1)


def job(
    name: str, state: str, began: float = 2, ended: float | None = 1, **more: Any
) -> JobSummary:
    """Times are hours before now."""
    started = None if state in ("Created", "Suspended") else NOW - began * HOUR
    over = NOW - ended * HOUR if ended is not None and state in ("Succeeded", "Failed") else None
    return JobSummary(
        Key("team", name), state, NOW - (began + 1) * HOUR, started=started, completed=over, **more
    )


def test_ends_are_counted_within_the_time() -> None:
    jobs = [
        job("a", "Succeeded", 5, 1),
        job("b", "Succeeded", 3, 1),
        job("c", "Failed", 5, 2),
        job("d", "Failed", 50, 40),
    ]
    found = overview(jobs, 24, NOW, 1.5)
    assert (found.total, found.states) == (4, {"Succeeded": 2, "Failed": 2})
    assert (found.succeeded, found.failed) == (2, 1)
    assert found.success_rate == pytest.approx(2 / 3)
    assert found.average_seconds == 3 * 3600
    assert [one.name for one in found.failed_lately] == ["c"]
    assert (found.cpus_in_use, found.notes) == (1.5, ())


def test_nothing_is_made_up_where_nothing_ended_and_nobody_measured() -> None:
    found = overview([], 24, NOW, None, ("a note",))
    assert (found.success_rate, found.average_seconds, found.cpus_in_use) == (None, None, None)
    assert found.notes[0] == "a note" and "metrics API" in found.notes[1]


def test_gpu_hours_are_those_within_the_time() -> None:
    jobs = [
        job("before", "Succeeded", 50, 40, gpus=8),
        job("across", "Succeeded", 30, 20, gpus=2),
        job("still", "Running", 3, gpus=4),
        job("none", "Running", 3),
        job("waits", "Created", gpus=8),
    ]
    found = overview(jobs, 24, NOW, 0.0)
    assert found.gpu_hours == pytest.approx(2 * 4 + 4 * 3)
    assert found.gpus_in_use == 4


def test_a_job_that_somebody_suspended_does_not_wait() -> None:
    jobs = [
        job("new", "Created", 1),
        job("old", "Created", 9),
        job("again", "Restarting", 5),
        job("queued", "Suspended", 3, suspend=True, queue="fast"),
        job("held", "Suspended", suspend=True),
        job("asked", "Created", suspend=True),
    ]
    assert [one.name for one in overview(jobs, 24, NOW, 0.0).waiting] == [
        "old",
        "again",
        "queued",
        "new",
    ]


def test_lists_are_short() -> None:
    jobs = [job(f"r{n:02}", "Running", n) for n in range(30)]
    found = overview(jobs, 24, NOW, 0.0)
    assert [one.name for one in found.running] == [f"r{n:02}" for n in range(SHOWN)]


def test_use_by_project_begins_with_who_holds_most_and_is_for_all_projects_alone() -> None:
    jobs = [
        job("a", "Running", 2, gpus=4),
        job("b", "Created", gpus=8),
        msgspec.structs.replace(job("c", "Running", 3, gpus=8), key=Key("other", "c")),
        msgspec.structs.replace(job("d", "Succeeded", 3, 2), key=Key("idle", "d")),
    ]
    found = overview(jobs, 24, NOW, 0.0, by_project=True).projects
    assert [one.namespace for one in found] == ["other", "team", "idle"]
    team = found[1]
    assert (team.jobs, team.running, team.waiting, team.gpus_in_use) == (2, 1, 1, 4)
    assert team.gpu_hours == pytest.approx(8)
    assert overview(jobs, 24, NOW, 0.0).projects == ()


def strangely(end: str, annotations: dict[str, str]) -> JobSummary:
    """A TrainJob that ended so; the annotations are the controller's, and anybody's who may write
    the job."""
    ended = {"type": end, "status": "True", "lastTransitionTime": "2026-01-07T12:00:00Z"}
    stored = {
        "metadata": {
            "name": "strange",
            "namespace": "elsewhere",
            "creationTimestamp": "2026-01-07T06:00:00Z",
            "annotations": annotations,
        },
        "spec": {"runtimeRef": {"name": "mpi"}},
        "status": {"conditions": [{**ended, "reason": "Jobs", "message": "as JobSet says"}]},
    }
    return view_summary(TRAINJOB.view(stored))


@pytest.mark.parametrize("written", ["2026-01-07T00:00:00", "0001-01-01T00:00:00Z", "yesterday"])
def test_a_time_that_somebody_wrote_into_their_job_hides_nobodys(written: str) -> None:
    strange = strangely("Complete", {a.START_TIME: written, a.COMPLETION_TIME: written})
    jobs = [job("mine", "Succeeded", 5, 1, gpus=2), strange]
    found = overview(jobs, 24, NOW, 0.0)
    assert (found.succeeded, found.average_seconds) == (2, 5 * 3600)
    longest = paging.page(jobs, paging.ListQuery(sort_by="duration", order="desc"), NOW)
    assert [one.key.name for one in longest.jobs] == ["strange", "mine"]


def test_a_cause_that_somebody_wrote_into_their_job_fills_nobodys_list() -> None:
    assert len(strangely("Failed", {a.CAUSE: "x" * 200_000}).message) == bounds.LOG_LINE
    assert strangely("Failed", {}).message == "as JobSet says"
