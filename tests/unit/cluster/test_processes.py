"""Processes are found again by their mark and start time, and by nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tools.cluster import processes


def test_a_process_that_nobody_wrote_down_is_found_and_ended(tmp_path: Path) -> None:
    pid = processes.start(tmp_path, "sleeper", ["sleep", "60"])
    (tmp_path / "pid" / "sleeper").unlink()
    assert processes.marked(tmp_path) == [pid]
    processes.end(processes.marked(tmp_path))
    assert processes.marked(tmp_path) == []


def test_a_process_carries_the_mark_as_soon_as_it_is_started(tmp_path: Path) -> None:
    """Also while its program is still being loaded, when the kernel shows no environment yet."""
    for _ in range(20):
        pid = processes.start(tmp_path, "sleeper", ["sleep", "60"])
        try:
            assert Path(f"/proc/{pid}/environ").read_bytes()
        finally:
            processes.end([pid])


def test_a_child_of_a_started_process_carries_the_mark(tmp_path: Path) -> None:
    processes.start(tmp_path, "shell", ["sh", "-c", "sleep 60 & wait"])
    try:
        until = time.monotonic() + 30
        while len(processes.marked(tmp_path)) < 2 and time.monotonic() < until:
            time.sleep(0.01)  # a look; the loop has a deadline
        assert len(processes.marked(tmp_path)) == 2
    finally:
        processes.end(processes.marked(tmp_path))


def test_another_clusters_processes_are_not_ours(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    processes.start(other, "sleeper", ["sleep", "60"])
    try:
        assert processes.marked(tmp_path) == []
    finally:
        processes.end(processes.marked(other))


def test_a_reused_pid_counts_as_dead(tmp_path: Path) -> None:
    (tmp_path / "pid").mkdir()
    (tmp_path / "pid" / "etcd").write_text(f"{os.getpid()} 1")
    assert processes.recorded(tmp_path) == {"etcd": 0}


def test_a_living_process_is_recorded_as_alive(tmp_path: Path) -> None:
    pid = processes.start(tmp_path, "sleeper", ["sleep", "60"])
    try:
        assert processes.recorded(tmp_path) == {"sleeper": pid}
    finally:
        processes.end([pid])
    assert processes.recorded(tmp_path) == {"sleeper": 0}
