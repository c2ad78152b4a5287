"""`examples/sdk/job.py` as a user runs it, wherever jobs run: the program that the SDK was
specified with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "examples" / "sdk"


def run_example(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")} | env
    command = [sys.executable, str(FOLDER / "job.py"), "--name", "example", *words]
    return subprocess.run(command, env=clean, capture_output=True, text=True, timeout=300)


def demand_success(ended: subprocess.CompletedProcess[str], workers: int) -> None:
    """Every rank saw the volume, and the plain answers are text."""
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "example has Succeeded" in ended.stdout
    found = re.findall(r"^Rank (\d+) of (\d+): the sum is 5050$", ended.stdout, re.MULTILINE)
    assert sorted(found) == [(str(rank), str(workers)) for rank in range(workers)], ended.stdout
    assert re.search(r"worker 0 wrote \d+ characters of its own", ended.stdout)


def write_numbers(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "numbers.txt").write_text("\n".join(map(str, range(1, 101))))
    for one in (folder, folder / "numbers.txt"):
        one.chmod(0o755)
    return folder
