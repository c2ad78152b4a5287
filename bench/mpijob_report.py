"""Samples of `bench.mpijob` as a table for people and as a file for later comparison."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from bench.stored import lasting

RESULTS: Final = Path(__file__).parent / "results" / "mpijob.json"


class Sample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One contestant in one scene, once."""

    contestant: str
    scene: str
    times: dict[str, float] = {}
    """milestone -> seconds after the first post"""
    cpu: dict[str, float] = {}
    """seconds: the contestant's own, and the API server's and controller manager's beside it"""
    peak_mib: float = 0.0
    requests: int = 0
    by_verb: dict[str, int] = {}
    refused: dict[str, int] = {}
    jobs: int = 0
    stored: dict[str, int] = {}
    """kind -> bytes that all jobs have left in etcd, each finished"""

    @property
    def left(self) -> float | None:
        """KiB a job in etcd, but for events, which go, and what jobs share, which goes too."""
        return lasting(self.stored) / self.jobs / 1024 if self.stored and self.jobs else None

    @property
    def status_writes(self) -> float | None:
        """A job's, of its own kind."""
        kinds = ("mpijobs/status", "trainjobs/status")
        done = sum(n for what, n in self.by_verb.items() if what.endswith(kinds))
        return done / self.jobs if self.jobs else None


Columns = dict[str, Callable[[Sample], float | None]]

_COLUMNS: Final[Columns] = {
    "pods exist s": lambda s: s.times.get("workers_exist"),
    "pods run s": lambda s: s.times.get("workers_running"),
    "launchers s": lambda s: s.times.get("launchers"),
    "Running s": lambda s: s.times.get("running"),
    "Succeeded s": lambda s: s.times.get("succeeded"),
    "requests": lambda s: float(s.requests) if s.by_verb or s.cpu else None,
    "refused": lambda s: float(sum(s.refused.values())) if s.cpu else None,
    "CPU s": lambda s: s.cpu.get("self"),
    "peak MiB": lambda s: s.peak_mib or None,
    "API server CPU s": lambda s: s.cpu.get("apiserver"),
    "status writes/job": lambda s: s.status_writes,
    "etcd KiB/job": lambda s: s.left,
}


def report(
    samples: list[Sample], load_before: float, target: Path, columns: Columns = _COLUMNS
) -> None:
    """Print the table and write the file."""
    groups: dict[tuple[str, str], list[Sample]] = {}
    for sample in samples:
        groups.setdefault((sample.scene, sample.contestant), []).append(sample)
    rows = [_row(*key, group, columns) for key, group in groups.items()]
    print(f"| scene | contestant | n | {' | '.join(columns)} |")
    print("|---" * (len(columns) + 3) + "|")
    for row in sorted(rows, key=lambda row: _order(row[0])):
        print(f"| {' | '.join(row)} |")
    target.parent.mkdir(exist_ok=True)
    document = {"commit": commit(), "machine": machine(load_before), "samples": samples}
    target.write_bytes(msgspec.json.format(msgspec.json.encode(document)) + b"\n")


def _row(scene: str, contestant: str, group: list[Sample], columns: Columns) -> list[str]:
    cells = [_cell([read(sample) for sample in group]) for read in columns.values()]
    return [scene, contestant, str(len(group)), *cells]


def _cell(values: list[float | None]) -> str:
    """The median, with the range where there is one; a dash where a value is missing."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return "-"
    middle = f"{statistics.median(known):.4g}"
    spread = f" ({min(known):.4g}..{max(known):.4g})" if min(known) != max(known) else ""
    return middle + spread


def _order(scene: str) -> tuple[int, ...]:
    return tuple(int(part) for part in scene.split("x") if part.isdigit()) or (1 << 30,)


def commit() -> str:
    def git(*arguments: str) -> str:
        answer = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
        return answer.stdout.strip()

    changed = git("status", "--porcelain", "--", "src", "tools/cluster", "bench")
    return git("rev-parse", "--short", "HEAD") + (" with changes" if changed else "")


def machine(load_before: float) -> str:
    load = f"load {load_before:.1f} before and {os.getloadavg()[0]:.1f} after"
    kernel = f"Linux {platform.release()}"
    return f"{os.cpu_count()} cores, {kernel}, Python {platform.python_version()}, {load}"
