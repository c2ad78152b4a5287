"""From another volume (CTL-9): who can write to it decides about nothing else of this pod."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mpi_trainer.initializers import folder
from tests.sim.initializers.fetching import Runner


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    (path / "sub").mkdir(parents=True)
    (path / "a").write_text("1")
    (path / "sub/b").write_text("2")
    return path


def test_what_an_initializer_has_fetched_can_be_copied(
    source: Path, tmp_path: Path, runner: Runner
) -> None:
    assert runner.here(f"file://{source}").status == 0
    copied = Runner(tmp_path / "copied", runner._capsys)
    done = copied.here(f"file://{runner.target}")
    assert done.status == 0, done.err
    assert copied.files == runner.files


def test_what_an_initializer_has_not_ended_is_not_copied(
    source: Path, tmp_path: Path, runner: Runner
) -> None:
    (source / "sub" / f"{folder.STAGING}0").mkdir()
    done = runner.here(f"file://{source}")
    assert done.status == 1
    assert f"{source}/sub is not whole" in done.err


def test_a_folder_that_is_too_deep_is_told_and_may_be_left_out(
    source: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(source)
    for _ in range(1100):
        Path("d").mkdir()
        os.chdir("d")
    Path("lost").write_text("3")
    monkeypatch.undo()
    try:
        done = runner.here(f"file://{source}")
        assert done.status == 1
        assert "leads deeper than any path that is fetched" in done.err
        assert runner.here(f"file://{source}", IGNORE_PATTERNS="d/*").status == 0
        assert runner.files == {"a": b"1", "sub/b": b"2"}
    finally:
        subprocess.run(["rm", "-rf", source / "d"], check=True)


def test_a_folder_that_may_not_be_read_is_told(
    source: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was left out without a word, and the copy was marked as whole."""
    (source / "lost+found").mkdir()
    scanning = os.scandir

    def refused(path: Any) -> Any:
        if str(path).endswith(("/sub", "/lost+found")):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scanning(path)

    monkeypatch.setattr(os, "scandir", refused)
    done = runner.here(f"file://{source}")
    assert done.status == 1
    assert f"{source}/sub Permission denied" in done.err
    assert runner.here(f"file://{source}", IGNORE_PATTERNS="sub/*").status == 0
    assert (runner.target / "a").read_text() == "1"


def test_what_cannot_be_fetched_may_be_left_out(source: Path, runner: Runner) -> None:
    """As every such error says."""
    (source / "back\\slash").write_text("3")
    (source / "passwd").symlink_to("/etc/passwd")
    (source / "latest").symlink_to("sub")
    os.mkfifo(source / "pipe")
    for patterns in ("back*,passwd,latest/*", "back*,pipe,latest/*", "passwd,latest/*,pipe"):
        assert runner.here(f"file://{source}", IGNORE_PATTERNS=patterns).status == 1
    for link in ("latest", "latest/*"):
        done = runner.here(f"file://{source}", IGNORE_PATTERNS=f"back*,passwd,pipe,{link}")
        assert done.status == 0, done.err
    assert runner.files == {"a": b"1", "sub/b": b"2"}


def test_a_folder_that_becomes_a_link_in_that_moment_is_not_followed(
    source: Path, tmp_path: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes to the volume would get what only this pod may read."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b").write_text("9")
    seen = (source / "sub/b").stat()
    os.utime(outside / "b", ns=(seen.st_atime_ns, seen.st_mtime_ns))
    opening = os.open

    def swapped(path: Any, *rest: Any, **named: Any) -> int:
        if str(path).endswith("sub/b") and not (source / "sub").is_symlink():
            (source / "sub").rename(tmp_path / "was")
            (source / "sub").symlink_to(outside)
        return opening(path, *rest, **named)

    monkeypatch.setattr(os, "open", swapped)
    done = runner.here(f"file://{source}")
    assert done.status == 1
    assert "is a link to what lies outside" in done.err
    assert runner.files == {}
