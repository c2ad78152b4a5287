"""What a job file's policies do, as the user of `odh run -f` sees it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpi_trainer.local.pods.cgroups import detect
from tests.local.odh import run

LIMITED = pytest.mark.skipif(detect().memory is None, reason="no memory control group is ours")


def job(folder: Path, command: list[str], *, limits: Any = None, **policy: Any) -> str:
    """The path of a job file; /state in the launcher is `folder`."""

    def template(**container: Any) -> dict[str, Any]:
        mpi = {"name": "mpi", "image": "local", **container}
        mpi["volumeMounts"] = [{"name": "state", "mountPath": "/state"}]
        volume = {"name": "state", "hostPath": {"path": str(folder)}}
        return {"spec": {"containers": [mpi], "volumes": [volume]}}

    worker = template(resources={"limits": limits or {}})
    manifest = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "job"},
        "spec": {
            "runPolicy": policy,
            "mpiReplicaSpecs": {
                "Launcher": {"template": template(command=command)},
                "Worker": {"replicas": 2, "template": worker},
            },
        },
    }
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(manifest))
    return str(path)


def failing(times: int) -> list[str]:
    """A program that fails so often and then succeeds; every try adds a line to /state/tries."""
    ranks = f'mpirun -n 2 sh -c "test $(wc -l </state/tries) -gt {times}"'
    return ["sh", "-c", f"echo again >>/state/tries; {ranks}"]


def tries(folder: Path) -> int:
    return len((folder / "tries").read_text().splitlines())


def test_a_job_is_tried_again_and_every_restart_is_told(tmp_path: Path) -> None:
    """CTL-11: the third of three attempts succeeds, so the job does."""
    ended = run("run", "-f", job(tmp_path, failing(2), backoffLimit=2))
    assert ended.returncode == 0, ended.stderr
    told = [line for line in ended.stderr.splitlines() if line.startswith("Restarting: ")]
    assert len(told) == 2
    assert told[0].startswith("Restarting: Attempt 1 failed (retry 1 of 2 follows): ")
    assert told[1].startswith("Restarting: Attempt 2 failed (retry 2 of 2 follows): ")
    assert all("was the first to fail, with exit code 1" in line for line in told)
    assert tries(tmp_path) == 3
    assert "2 ranks on 2 hosts" in ended.stderr


def test_a_job_that_fails_too_often_fails_and_says_how_often(tmp_path: Path) -> None:
    """CTL-11: one budget, and the reason of the last attempt in the end."""
    ended = run("run", "-o", "json", "-f", job(tmp_path, failing(9), backoffLimit=1))
    assert ended.returncode == 1
    result = json.loads(ended.stdout)
    assert (result["state"], result["reason"]) == ("Failed", "BackoffLimitExceeded")
    assert "2 attempts failed; the last: " in result["message"]
    assert tries(tmp_path) == 2


def test_quiet_says_nothing_of_restarts(tmp_path: Path) -> None:
    ended = run("run", "-q", "-f", job(tmp_path, failing(1), backoffLimit=1))
    assert ended.returncode == 0, ended.stderr
    assert "Restarting" not in ended.stderr


def test_a_job_over_its_deadline_is_ended(tmp_path: Path) -> None:
    """CTL-2: activeDeadlineSeconds, with the field named in the message."""
    command = ["mpirun", "-n", "2", "sleep", "600"]
    started = time.monotonic()
    path = job(tmp_path, command, activeDeadlineSeconds=2, backoffLimit=5)
    ended = run("run", "-o", "json", "-f", path)
    assert time.monotonic() - started < 20
    assert ended.returncode == 1
    result = json.loads(ended.stdout)
    assert (result["state"], result["reason"]) == ("Failed", "DeadlineExceeded")
    assert "runPolicy.activeDeadlineSeconds" in result["message"]


@LIMITED
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_a_rank_over_the_memory_limit_is_told_as_oom_killed(tmp_path: Path, mpi: str) -> None:
    """OBS-2: the kernel kills the rank and not its worker; the failure says why."""
    program = "import os; rank = os.environ.get('OMPI_COMM_WORLD_RANK', os.environ.get('PMI_RANK'))"
    program += "; rank == '1' and bytearray(512 << 20); import time; time.sleep(3)"
    command = ["mpirun", "-n", "2", "python", "-c", program]
    path = job(tmp_path, command, limits={"memory": "192Mi"}, backoffLimit=0)
    ended = run("run", "--mpi", mpi, "-o", "json", "-f", path)
    assert ended.returncode == 1
    result = json.loads(ended.stdout)
    ends = {rank["rank"]: rank["end"] for rank in result["ranks"]}
    assert ends[1] == "signal 9 (OOMKilled)"
    assert "OOMKilled" not in ends[0]
    assert (
        "rank 1 on job-worker-1 was the first to fail, with signal 9 (OOMKilled)"
        in (result["message"])
    )


@LIMITED
def test_a_rank_killed_by_hand_under_a_limit_is_not_told_as_oom_killed(tmp_path: Path) -> None:
    program = "import os; os.environ['OMPI_COMM_WORLD_RANK'] == '1' and os.kill(os.getpid(), 9)"
    command = ["mpirun", "-n", "2", "python", "-c", program]
    path = job(tmp_path, command, limits={"memory": "192Mi"}, backoffLimit=0)
    ended = run("run", "-f", path)
    assert ended.returncode == 1
    assert "signal 9 (SIGKILL)" in ended.stderr
    assert "OOM" not in ended.stderr


@LIMITED
def test_an_earlier_attempts_oom_kill_is_not_blamed_on_the_next(tmp_path: Path) -> None:
    """Each attempt counts its own: a worker that is used again must not bring its past along."""
    first = "exec python -c 'bytearray(512 << 20)'"
    second = "kill -9 $$$$"  # `$$` in a manifest is a plain dollar
    choice = f"if test -e /state/again; then {second}; else touch /state/again; {first}; fi"
    command = ["mpirun", "-n", "1", "sh", "-c", choice]
    path = job(tmp_path, command, limits={"memory": "192Mi"}, backoffLimit=1)
    ended = run("run", "-f", path)
    assert ended.returncode == 1, ended.stderr
    assert ended.stderr.count("(OOMKilled)") == 1, ended.stderr
    assert "signal 9 (SIGKILL)" in ended.stderr
