"""Why an attempt failed on this machine: read of the end of its log, since its supervisor waits."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mpi_trainer.decide.history import Attempt
from mpi_trainer.local.jobs import findings
from mpi_trainer.local.jobs.logfile import LogEntry, LogWriter


def found(folder: Path, *texts: str) -> str:
    lines = enumerate(("Traceback (most recent call last):", "ValueError: bad batch", *texts))
    writer = LogWriter(folder)
    writer.add([LogEntry(n, 0.0, 1, "pi-launcher", "stderr", 0, text) for n, text in lines])
    snapshot: Any = SimpleNamespace(pods=(), ranks=())
    return findings.attempt_findings(folder, Attempt(1, "LauncherFailed", "m"), snapshot)[0].cause


def test_only_so_many_lines_of_a_long_log_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "LINES", 20)
    assert found(tmp_path, *["usual"] * 20) == "UnknownFailure"


def test_the_last_lines_show_the_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "LINES", 20)
    assert found(tmp_path, *["usual"] * 10) == "ProgramException"
