"""A rank of a real job is killed in the middle of training, and the next attempt goes on.

CTL-11, SC-007: with real MPI, by the program in examples/checkpoints.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.local.odh import Run, run, until
from tools.examples import EXAMPLES

STEPS, EVERY = 60, 10
STEP = re.compile(r"step (\d+)/\d+ loss (\S+)")
BEGUN = re.compile(r"attempt (\d+) begins after step (\d+)")

pytestmark = pytest.mark.timeout(120)


def job(folder: Path, *options: str, **policy: Any) -> tuple[str, str]:
    """A job of two workers with a rank each that train in /work."""
    shutil.copy(EXAMPLES / "checkpoints/train.py", folder)
    words = ["python", "-m", "mpi4py", "train.py", "--steps", str(STEPS), "--every", str(EVERY)]
    container = {
        "name": "mpi",
        "image": "local",
        "workingDir": "/work",
        "volumeMounts": [{"name": "work", "mountPath": "/work"}],
    }
    volume = {"name": "work", "hostPath": {"path": str(folder)}}
    launcher = {**container, "command": ["mpirun", "-n", "2", *words, *options]}

    def template(made: dict[str, Any]) -> dict[str, Any]:
        return {"template": {"spec": {"containers": [made], "volumes": [volume]}}}

    manifest = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "job"},
        "spec": {
            "runPolicy": policy,
            "mpiReplicaSpecs": {
                "Launcher": template(launcher),
                "Worker": {"replicas": 2, **template(container)},
            },
        },
    }
    (folder / "job.yaml").write_text(yaml.safe_dump(manifest))
    return "-f", str(folder / "job.yaml")


def losses(output: str) -> dict[int, set[str]]:
    """Of each step, by all attempts that made it."""
    found: dict[int, set[str]] = {}
    for step, loss in STEP.findall(output):
        found.setdefault(int(step), set()).add(loss)
    return found


def test_a_killed_rank_costs_at_most_one_interval_and_changes_no_loss(tmp_path: Path) -> None:
    """CTL-11: kill -9 from outside; every step has the loss of the run that nobody disturbed."""
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    whole = run("run", *job(tmp_path / "whole"))
    assert whole.returncode == 0, whole.stderr
    undisturbed = losses(whole.stdout)
    assert [*undisturbed] == [*range(1, STEPS + 1)]

    killed = Run("run", *job(tmp_path / "killed", "--pause", "0.02", backoffLimit=1))
    killed.until_printed(f"step 34/{STEPS}")
    os.kill(killed.pids("train.py")[-1], signal.SIGKILL)
    ended = killed.end()
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Attempt 1 failed (retry 1 of 1 follows)" in ended.stderr
    before, after = re.split("attempt 2 begins", ended.stdout)
    reached, (_, resumed) = max(losses(before)), BEGUN.findall(ended.stdout)[1]
    assert 0 <= reached - int(resumed) <= EVERY
    assert [*losses(after)] == [*range(int(resumed) + 1, STEPS + 1)]
    assert losses(ended.stdout) == undisturbed
