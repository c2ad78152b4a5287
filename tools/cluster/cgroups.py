"""Control groups of nodes: made before the kubelet starts, emptied and removed at the end.

Works with cgroup v1 (one tree a controller) and v2 (one tree). A node's group is named like its
network namespace, so that all processes of its pods are found there whatever else went wrong.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

_ROOT: Final = Path("/sys/fs/cgroup")
_CONTROLLERS: Final = ("cpuset", "cpu", "memory", "pids")


def trees() -> list[Path]:
    """The roots of all cgroup trees on this machine."""
    if (_ROOT / "cgroup.controllers").exists():
        return [_ROOT]
    return sorted(
        path
        for path in _ROOT.glob("*")
        if not path.is_symlink() and (path / "cgroup.procs").exists()
    )


def create(name: str) -> None:
    """Make a node's group in every tree."""
    for tree in trees():
        if tree.name == "unified":
            continue
        group = tree / name
        if tree == _ROOT:
            enabled = (tree / "cgroup.subtree_control").read_text().split()
            for controller in set(_CONTROLLERS) - set(enabled):
                (tree / "cgroup.subtree_control").write_text(f"+{controller}")
        group.mkdir(exist_ok=True)
        if tree.name == "cpuset":
            # A v1 cpuset starts empty, and nothing can run in an empty one.
            for file in ("cpuset.cpus", "cpuset.mems"):
                (group / file).write_text((tree / file).read_text())


def members(name: str) -> list[int]:
    """All processes in the group or below it."""
    pids: set[int] = set()
    for tree in trees():
        for group in _with_all_below(tree / name):
            try:
                listed = (group / "cgroup.procs").read_text().split()
            except OSError:
                continue
            pids.update(int(pid) for pid in listed if pid != "0")
    return sorted(pids)


def remove(name: str) -> None:
    """Remove an empty group and all below it."""
    for tree in trees():
        for group in sorted(_with_all_below(tree / name), key=lambda path: -len(path.parts)):
            _rmdir(group)


def existing(prefix: str) -> list[Path]:
    """Groups at the top whose name starts with `prefix`."""
    return [path for tree in trees() for path in tree.glob(f"{prefix}*") if path.is_dir()]


def _with_all_below(group: Path) -> list[Path]:
    """What is there of them: groups of pods that end may go at any moment, even while we look."""
    return [Path(folder) for folder, _, _ in os.walk(group)]


def _rmdir(path: Path) -> None:
    # The kernel frees a dead process's group a moment after the process is gone.
    for _ in range(100):
        try:
            path.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)
