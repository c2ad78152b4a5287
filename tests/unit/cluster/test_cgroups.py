"""Groups of nodes on a machine whose pods end while they are looked at."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tools.cluster import cgroups


def test_groups_that_go_while_they_are_looked_at_are_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "_ROOT", tmp_path)
    (tmp_path / "cgroup.controllers").touch()
    node = tmp_path / "node"
    node.mkdir()
    (node / "cgroup.procs").write_text("7\n")
    over = threading.Event()

    def pods_come_and_go() -> None:
        while not over.is_set():
            for pod in (node / "a", node / "b"):
                (pod / "deep").mkdir(parents=True, exist_ok=True)
            for pod in (node / "a", node / "b"):
                (pod / "deep").rmdir()
                pod.rmdir()

    other = threading.Thread(target=pods_come_and_go)
    other.start()
    try:
        found = {tuple(cgroups.members("node")) for _ in range(3000)}
    finally:
        over.set()
        other.join()
    assert found == {(7,)}
