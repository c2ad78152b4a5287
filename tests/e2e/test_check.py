"""`odh runtime test` on real nodes: two pods apart, what it measures, and nothing left (RT-1)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.api.odh import Odh
from tests.cluster import Kubectl
from tests.e2e.operator import mpijob

pytestmark = pytest.mark.timeout(400, func_only=True)


def test_a_large_job_is_tried_small_on_two_nodes(
    restricted_home: Kubectl, image: Callable[[str], str], tmp_path: Path
) -> None:
    command = ["mpirun", "--bind-to", "none", "-n", "64", "python3", "train.py"]
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(mpijob("wide", image("mpi-openmpi"), command, slots=8)))
    odh = Odh(restricted_home.spec.kubeconfig, restricted_home.namespace)
    ended = odh("runtime", "test", str(path), "-o", "json", seconds=350)
    report = yaml.safe_load(ended.stdout)
    assert {step["outcome"] for step in report["steps"]} == {"ok"}, report
    assert len(set(report["nodes"])) == 2
    assert report["latency"] > 0
    assert report["bandwidth"] > 0
    assert odh.json("mpijob", "list")["items"] == []
