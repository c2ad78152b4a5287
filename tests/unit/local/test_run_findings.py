"""Why a job in the foreground failed: from the end of what its last attempt printed."""

from __future__ import annotations

import msgspec
import pytest

from mpi_trainer.decide import reasons
from mpi_trainer.diagnose.rank_lines import Line
from mpi_trainer.local.execute import reports, run_findings
from mpi_trainer.local.execute.run_findings import PrintedLines

MISSING = "ModuleNotFoundError: No module named 'torch'"
FAILED = reports.JobEnded(
    state="Failed",
    reason="LauncherPodFailed",
    message="Launcher pi-launcher failed with exit code 1.",
    ranks=(
        reports.RankRow(0, "pi-worker-0", "", "0", 0),
        reports.RankRow(1, "pi-worker-1", "", "1", 1),
    ),
    seconds=1.0,
    pods=(reports.PodEnd("pi-launcher", "launcher", 1),),
)


def line(text: str, rank: int | None = 1) -> Line:
    return Line("pi-launcher", "launcher", "stderr", rank, text)


def test_the_cause_comes_with_the_rank_and_its_host() -> None:
    printed = PrintedLines()
    printed.hear(line(MISSING))
    (first, *_) = printed.findings(FAILED)
    assert (first.cause, first.ranks, first.hosts) == ("ModuleMissing", (1,), ("pi-worker-1",))


def test_an_earlier_attempt_explains_nothing() -> None:
    printed = PrintedLines()
    printed.hear(line(MISSING))
    printed.hear(reports.EventReport("Warning", reasons.RESTARTING, "retry 1 of 6"))
    printed.hear(line("no images below /data"))
    assert printed.findings(FAILED)[0].cause == "RankExitedNonZero"


def test_a_job_that_was_stopped_or_went_well_is_not_explained() -> None:
    printed = PrintedLines()
    printed.hear(line(MISSING))
    for change in ({"state": "Succeeded"}, {"stopped": True}):
        assert printed.findings(msgspec.structs.replace(FAILED, **change)) == ()


def test_what_is_kept_of_the_output_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_findings, "ROOM", 10_000)
    printed = PrintedLines()
    printed.hear(line(MISSING))
    for _ in range(100):
        printed.hear(line("x" * 5_000))
    assert len(printed._lines) == 4
    assert printed.findings(FAILED)[0].cause == "RankExitedNonZero"
