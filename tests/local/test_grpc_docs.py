"""The program of docs/grpc.md works, started as the page says."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from mpi_trainer.local.jobs import store
from tests.api.running import free_port
from tests.local.odh import ODH

PAGE = Path(__file__).parents[2] / "docs/grpc.md"
BLOCK = re.compile(r"```(sh|python)\n(.*?)```", re.DOTALL)
PORT = "9090"


@pytest.mark.timeout(240)
def test_the_documented_program_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DOC-1, SC-004."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("MPI_TRAINER_BACKEND", "local")
    (_, commands), (_, program) = BLOCK.findall(PAGE.read_text())
    port = str(free_port())
    (tmp_path / "hello.py").write_text(program.replace(PORT, port))
    story = subprocess.Popen(
        ["bash", "-ec", "trap 'kill %1; wait %1 || true' EXIT\n" + commands.replace(PORT, port)],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{ODH.parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        said, errors = story.communicate(timeout=200)
    except subprocess.TimeoutExpired:
        os.killpg(story.pid, signal.SIGKILL)
        said, errors = story.communicate()
    finally:
        for folder in store.folders():
            store.remove(folder)
    assert story.returncode == 0, said + errors
    lines = said.splitlines()
    assert lines[-2:] == ["JOB_STATE_SUCCEEDED", "0 hello"], said
