"""`odh run` with real MPI: placement, exit codes, and nothing left whatever is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mpi_trainer.local.distributions import DISTRIBUTIONS
from tests.local.odh import ODH, Run, run, until

BUILDS = [d.name for d in DISTRIBUTIONS]
HELLO = (
    "from mpi4py import MPI; import socket; c = MPI.COMM_WORLD; "
    "print('rank', c.rank, 'of', c.size, 'on', socket.gethostname(), flush=True); c.Barrier()"
)
# Every rank says that it is there and then waits in a collective that never completes.
WAIT = (
    "from mpi4py import MPI; import time; c = MPI.COMM_WORLD; c.Barrier(); "
    "print('all', c.size, 'here', flush=True) if c.rank == 0 else time.sleep(600); c.Barrier()"
)
builds = pytest.mark.parametrize("mpi", BUILDS)


@builds
def test_ranks_fill_every_slot_of_every_worker(mpi: str) -> None:
    """AC-3: eight ranks of one world on four hosts."""
    ended = run(
        "run", "-w", "4", "-s", "2", "--mpi", mpi, "-o", "json", "--", "python", "-c", HELLO
    )
    assert ended.returncode == 0, ended.stderr
    result = json.loads(ended.stdout)
    assert [r["rank"] for r in result["ranks"]] == list(range(8))
    assert sorted(r["pod"] for r in result["ranks"]) == sorted(
        f"job-worker-{i}" for i in range(4) for _ in range(2)
    )
    assert len({r["address"] for r in result["ranks"]}) == 4
    for rank in range(8):
        assert f"[{rank}] rank {rank} of 8 on job-worker-" in ended.stderr


@builds
def test_a_failing_program_fails_the_job_and_names_the_rank(mpi: str) -> None:
    """OBS-2: exit 1, and the rank that called MPI_Abort is in the table."""
    program = "from mpi4py import MPI; c = MPI.COMM_WORLD; c.Barrier(); c.rank == 1 and c.Abort(42)"
    ended = run("run", "-w", "2", "--mpi", mpi, "--", "python", "-c", program)
    assert ended.returncode == 1
    assert "Failed" in ended.stderr
    assert "exit code 42" in ended.stderr


@builds
def test_ctrl_c_stops_the_job_and_cleans_up(mpi: str) -> None:
    job = Run("run", "-w", "2", "-s", "2", "--mpi", mpi, "--", "python", "-c", WAIT)
    job.until_printed("all 4 here")
    job.signal(signal.SIGINT)
    ended = job.end()
    assert ended.returncode == 130
    assert "Stopped" in ended.stderr


@builds
def test_kill_9_of_mpirun_fails_the_job(mpi: str) -> None:
    job = Run("run", "-w", "2", "--mpi", mpi, "--", "python", "-c", WAIT)
    job.until_printed("all 2 here")
    # The oldest process whose program is the launcher itself; helpers of it come later.
    os.kill(job.pids(r"^\S*(mpirun|mpiexec|prterun|mpiexec\.hydra)\b")[0], signal.SIGKILL)
    ended = job.end()
    assert ended.returncode == 1
    assert "LauncherPodFailed" in ended.stderr or "ended with signal 9" in ended.stderr


@builds
def test_kill_9_of_one_rank_fails_the_job(mpi: str) -> None:
    job = Run("run", "-w", "2", "--mpi", mpi, "--", "python", "-c", WAIT)
    job.until_printed("all 2 here")
    os.kill(job.pids(r"^python -c from mpi4py")[-1], signal.SIGKILL)
    ended = job.end()
    assert ended.returncode == 1
    assert "signal 9" in ended.stderr


@builds
def test_kill_9_of_one_workers_sshd_fails_the_job_and_names_the_worker(mpi: str) -> None:
    job = Run("run", "-w", "2", "--mpi", mpi, "--", "python", "-c", WAIT)
    job.until_printed("all 2 here")
    listeners = job.pids(r"sshd.* -D -e")
    assert len(listeners) == 2
    os.kill(listeners[-1], signal.SIGKILL)
    ended = job.end()
    assert ended.returncode == 1
    assert "Worker job-worker-" in ended.stderr and "signal 9" in ended.stderr


@builds
def test_kill_9_of_odh_leaves_nothing(mpi: str) -> None:
    job = Run("run", "-w", "2", "--mpi", mpi, "--", "python", "-c", WAIT)
    job.until_printed("all 2 here")
    job.signal(signal.SIGKILL)
    assert job.end().returncode == -signal.SIGKILL


def test_kill_9_of_the_supervisor_is_a_failure_that_leaves_nothing() -> None:
    job = Run("run", "-w", "2", "--", "python", "-c", WAIT)
    job.until_printed("all 2 here")
    supervisor = until(
        "the supervisor is there", lambda: [p for p in job.pids("odh run") if p != job.pid]
    )
    os.kill(supervisor[0], signal.SIGKILL)
    ended = job.end()
    assert ended.returncode == 1
    assert "was killed" in ended.stderr


def test_an_ordinary_user_runs_the_same_job(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tier A: no root, no container engine."""
    if os.getuid() != 0:
        pytest.skip("the other tests of this file already run as an ordinary user")
    from mpi_trainer.local.places import data_dir

    uid = 12345
    program = (
        "import os, sys; os.setgid(%d); os.setuid(%d); os.execv(sys.argv[1], sys.argv[1:])"
        % (uid, uid)
    )
    home = Path("/var/tmp/mpi-trainer-test-home")
    home.mkdir(exist_ok=True)
    os.chown(home, uid, uid)
    del data_dir, tmp_path_factory
    try:
        ended = subprocess.run(
            [sys.executable, "-c", program, str(ODH)]
            + ["run", "-w", "2", "-s", "2", "--mpi", "mpich", "--", "python", "-c", HELLO],
            env={**os.environ, "HOME": str(home)},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert ended.returncode == 0, ended.stderr
        assert "4 ranks on 2 hosts" in ended.stderr
    finally:
        subprocess.run(["rm", "-rf", str(home)], check=True)
