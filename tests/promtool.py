"""Prometheus' own checks: whether rules can be read, and what they do over time."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.prometheus_package import program


def promtool(*words: str) -> subprocess.CompletedProcess[str]:
    command = [str(program("promtool")), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def why_unreadable(rules: Sequence[Mapping[str, Any]], folder: Path) -> str:
    """What promtool says against rules; empty where it reads them."""
    file = folder / "read.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "read", "rules": [*rules]}]}))
    ended = promtool("check", "rules", str(file))
    return "" if ended.returncode == 0 else ended.stdout + ended.stderr


def why_not(rules: Path, tests: Sequence[Mapping[str, Any]], folder: Path) -> str:
    """What promtool says against tests of rules, in its own words for them; empty if they pass."""
    file = folder / "tests.yml"
    content = {"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [*tests]}
    file.write_text(yaml.safe_dump(content))
    ended = promtool("test", "rules", str(file))
    return "" if ended.returncode == 0 else ended.stdout + ended.stderr
