"""A process of the fork server is its caller's: what it is given, how it ends, and that it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests import forkserver


@pytest.mark.parametrize(
    "words", [("validate", "-f", "job.yaml"), ("validate", "-f", "-"), ("history",), ("--version",)]
)
def test_a_process_is_as_the_installed_program_would_be(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Its folder, input, variables, output and exit code."""
    (tmp_path / "job.yaml").write_text("kind: [")
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    one, other = (
        subprocess.run(
            [program, *words],
            input="a: b: c",
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        for program in (forkserver.odh(), forkserver.INSTALLED)
    )
    assert (one.returncode, one.stdout, one.stderr) == (
        other.returncode,
        other.stdout,
        other.stderr,
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_signals_of_the_caller_reach_it(tmp_path: Path, number: int, code: int) -> None:
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    watching = subprocess.Popen(
        [forkserver.odh(), "mpijob", "list", "--watch"],
        env=env,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watching.stderr is not None
    assert "no jobs" in watching.stderr.readline()
    watching.send_signal(number)
    # Its streams are closed only when it has ended, and not with the caller alone.
    watching.communicate(timeout=60)
    assert watching.returncode == code
