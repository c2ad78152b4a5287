"""A rank of a real job is killed in the middle of training, and the next attempt goes on.

CTL-11, SC-007: with real MPI, by the program in examples/checkpoints.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.local.odh import ODH, Run, run
from tests.pages import ROOT
from tools.examples import EXAMPLES

STEPS, EVERY = 40, 10
OTHERS = ("openmpi4", "mpich", "intel")
MPIS = ["openmpi", *(pytest.param(mpi, marks=pytest.mark.full) for mpi in OTHERS)]
STEP = re.compile(r"step (\d+)/\d+ loss (\S+)")
PROGRAMS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/checkpoints.md").read_text(), re.DOTALL)
BEGUN = re.compile(r"attempt (\d+) begins after step (\d+)")

pytestmark = pytest.mark.timeout(120)


def job(folder: Path, *options: str, **policy: Any) -> tuple[str, str]:
    """A job of two workers with a rank each that train in /training."""
    shutil.copy(EXAMPLES / "checkpoints/train.py", folder)
    words = ["python", "-m", "mpi4py", "train.py", "--steps", str(STEPS), "--every", str(EVERY)]
    container = {
        "name": "mpi",
        "image": "local",
        "workingDir": "/training",
        "volumeMounts": [{"name": "work", "mountPath": "/training"}],
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


@pytest.mark.parametrize("mpi", MPIS)
def test_a_killed_rank_costs_at_most_one_interval_and_changes_no_loss(
    tmp_path: Path, mpi: str
) -> None:
    """CTL-11: kill -9 from outside; every step has the loss of the run that nobody disturbed."""
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    whole = run("run", "--mpi", mpi, *job(tmp_path / "whole"))
    assert whole.returncode == 0, whole.stderr
    undisturbed = losses(whole.stdout)
    assert [*undisturbed] == [*range(1, STEPS + 1)]

    slowly = job(tmp_path / "killed", "--pause", "0.02", backoffLimit=1)
    killed = Run("run", "--mpi", mpi, *slowly)
    killed.until_printed(f"step 24/{STEPS}")
    os.kill(killed.pids("train.py")[-1], signal.SIGKILL)
    ended = killed.end()
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Attempt 1 failed (retry 1 of 1 follows)" in ended.stderr
    before, after = re.split("attempt 2 begins", ended.stdout)
    reached, (_, resumed) = max(losses(before)), BEGUN.findall(ended.stdout)[1]
    assert 0 <= reached - int(resumed) <= EVERY
    assert [*losses(after)] == [*range(int(resumed) + 1, STEPS + 1)]
    assert losses(ended.stdout) == undisturbed


def test_a_job_that_is_told_to_end_saves_the_step_it_is_at(tmp_path: Path) -> None:
    """CTL-11: by MPICH, whose mpirun leaves the ranks the grace period."""
    options = ("--every", "1000", "--pause", "0.02")
    told = Run("run", "--mpi", "mpich", *job(tmp_path, *options))
    told.until_printed("step 12/")
    told.signal(signal.SIGTERM)
    ended = told.end()
    (stopped,) = re.findall(r"stopped after step (\d+), which is saved", ended.stdout)
    (saved,) = (tmp_path / "checkpoints").glob("step-*")
    assert int(saved.name.split("-")[1]) == int(stopped) == max(losses(ended.stdout)) < STEPS
    assert (saved / "complete").exists()


def python(folder: Path) -> str:
    """What program.py prints."""
    ended = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, check=True
    )
    return ended.stdout


def test_the_programs_of_the_page_work(tmp_path: Path) -> None:
    """DOC-1: but the last, for which torch would have to be here."""
    simple, agreeing, asynchronous, with_torch = PROGRAMS
    (tmp_path / "program.py").write_text(simple)
    assert python(tmp_path) == "attempt 1 begins after step 0\n"
    assert python(tmp_path) == "attempt 2 begins after step 20\n"
    (tmp_path / "program.py").write_text(asynchronous)
    assert python(tmp_path) == "saved\n"
    (tmp_path / "program.py").write_text(simple)
    assert python(tmp_path) == "attempt 4 begins after step 50\n"
    (tmp_path / "agreeing.py").write_text(f"{agreeing}print(checkpoints.newest())\n")
    compile(with_torch, "checkpoints.md", "exec")
    ended = subprocess.run(
        [ODH, "run", "-w", "2", "--", "python", "-m", "mpi4py", "agreeing.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("Checkpoint(step=50, attempt=3, size=1") == 2
