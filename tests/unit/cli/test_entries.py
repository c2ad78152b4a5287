"""MIG-1, RT-1: programs under the names that runbooks give them, over the same code as `odh`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.unit.migrate.cases import ROOT, base


def ran(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "tools" / program), *words],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


def test_migrate_mpijob_is_odh_migrate(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(base()))
    ended = ran("migrate-mpijob.py", "-f", str(path))
    assert ended.returncode == 0, ended.stderr
    assert "kind: TrainJob" in ended.stdout and "becomes TrainingRuntime" in ended.stderr
    path.write_text("{")
    assert ran("migrate-mpijob.py", "-f", str(path)).returncode == 2


def test_validate_runtime_is_odh_runtime_test() -> None:
    ended = ran("validate-runtime.py", "no-such-file.yaml", "--lint-only")
    assert ended.returncode == 2
    assert "no-such-file.yaml" in ended.stderr
