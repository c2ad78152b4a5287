"""The lock lets one in at a time, and dies with its holder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools.cluster.errors import ClusterError
from tools.cluster.lock import locked

HOLDER = """\
import sys, time
from pathlib import Path
from tools.cluster.lock import locked
with locked(Path(sys.argv[1]), "holding"):
    print("held", flush=True)
    time.sleep(60)
"""


def _holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    with _holder(tmp_path / "lock") as process:
        try:
            with (
                pytest.raises(ClusterError, match=rf"held by {process.pid} \(holding\)"),
                locked(tmp_path / "lock", "trying", wait_seconds=0.2),
            ):
                pass
        finally:
            process.kill()


def test_a_killed_holder_lets_go(tmp_path: Path) -> None:
    with _holder(tmp_path / "lock") as process:
        os.kill(process.pid, signal.SIGKILL)
        with locked(tmp_path / "lock", "trying", wait_seconds=5):
            pass
