"""A build's cost is its own, and a failed build shows what the compiler said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.cluster.compiling import compiled
from tools.cluster.errors import ClusterError

BURN = "import time\nwhile time.process_time() < {}: pass"


def _python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_cpu_time_counts_what_the_build_started_and_nothing_beside_it(tmp_path: Path) -> None:
    beside = subprocess.run(_python(BURN.format(1.0)), check=True)
    child = f"import subprocess; subprocess.run({_python(BURN.format(0.3))!r}, check=True)"
    figures = compiled("x", _python(child), tmp_path, os.environ, tmp_path / "log")
    assert beside.returncode == 0
    assert 0.3 <= figures.cpu_seconds < 1.0


def test_a_failed_build_shows_the_last_lines_of_its_log(tmp_path: Path) -> None:
    code = "import sys; [print('line', n) for n in range(40)]; sys.exit(1)"
    with pytest.raises(ClusterError, match="line 39") as failure:
        compiled("x", _python(code), tmp_path, os.environ, tmp_path / "log")
    assert "line 10" not in str(failure.value)
