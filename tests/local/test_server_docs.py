"""The commands of docs/server.md work, in the order of the page."""

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

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/server.md"
BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)
PORT = "8800"


@pytest.mark.timeout(240)
def test_the_documented_commands_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DOC-1."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("MPI_TRAINER_BACKEND", "local")
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) == 7
    script = "set -e\ntrap 'kill %1; wait %1 || true' EXIT\n" + "\n".join(blocks)
    story = subprocess.Popen(
        ["bash", "-c", script.replace(PORT, str(free_port()))],
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
    assert "[0] hello from hello-worker-0" in said, said
    assert '"accepted":true' in said and '"action":"createMPIJob"' in errors
    token = (tmp_path / "address").read_text().partition("token=")[2].strip()
    assert len(token) > 30 and token not in errors
