"""The record of `odh run`: any argument, any leftover, any line."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mpi_trainer.local.jobs import run_history
from mpi_trainer.local.jobs.run_history import LARGEST, RunRecord

RUN = RunRecord("a", ("true",), "/w", "openmpi", 1, datetime.now(UTC), 1.0, "Succeeded")


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def _with(*command: str, folder: str = "/w", message: str = "") -> RunRecord:
    return RunRecord("a", command, folder, "openmpi", 1, RUN.started, 1.0, "Failed", message)


def test_arguments_and_folders_that_are_not_utf_8_are_recorded() -> None:
    run_history.add(_with("cat", "\udcff.txt", folder="/w/\udcfe", message="no \ud800"))
    (found,) = run_history.records()
    assert (found.command, found.folder, found.message) == (("cat", "?.txt"), "/w/?", "no ?")


def test_a_line_that_was_cut_within_a_character_hides_no_other() -> None:
    run_history.add(RUN)
    with run_history._path().open("ab") as file:
        file.write(b'{"name": "\xc3"}\n[]\n')
    run_history.add(RUN)
    assert run_history.records() == [RUN, RUN]


def test_a_full_record_is_halved_also_beside_what_a_killed_process_left() -> None:
    run_history.add(RUN)
    path = run_history._path()
    path.with_suffix(f".{os.getpid()}").write_text("left")
    path.write_bytes(path.read_bytes() * (LARGEST // path.stat().st_size + 2))
    run_history.add(RUN)
    assert path.stat().st_size < LARGEST
    assert run_history.records()[-1] == RUN
    assert path.stat().st_mode & 0o077 == 0
