"""The progress that a TrainJob's status reports, as lists show it."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.cli.output.formatting import eta_words, progress_words
from mpi_trainer.sdk.backends.cluster.kinds import TRAINJOB
from mpi_trainer.sdk.backends.cluster.observed import reported_progress, view_summary


def trainjob(status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "tune", "namespace": "team"}, "status": status}


def test_a_list_shows_what_the_status_reports() -> None:
    said = {"progressPercentage": 45, "estimatedRemainingSeconds": 60,
            "lastUpdatedTime": "2026-11-18T06:00:00Z"}  # fmt: skip
    job = view_summary(TRAINJOB.view(trainjob({"trainerStatus": said})))
    assert progress_words(job.progress) == "45%"
    assert job.progress is not None
    assert eta_words(job.progress, job.progress.at + 10) == "50s"


@pytest.mark.parametrize(
    "status",
    [
        None,
        {},
        {"trainerStatus": None},
        {"trainerStatus": {}},
        {"trainerStatus": {"metrics": [{"name": "loss", "value": "1"}]}},
        {"trainerStatus": "45"},
        {"trainerStatus": {"progressPercentage": "much"}},
    ],
)
def test_a_status_without_a_percentage_reports_none(status: Any) -> None:
    assert reported_progress({"status": status}) is None
