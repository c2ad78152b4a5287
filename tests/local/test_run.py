"""`odh run` with real MPI: placement, exit codes, and nothing left whatever is killed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_trainer.local.mpi.distributions import DISTRIBUTIONS, WHEELS, named
from tests.local.matrix import CHOSEN, by_hand
from tests.local.odh import Run, run, until

BUILDS = [d.name for d in WHEELS]
HELLO = (
    "from mpi4py import MPI; import socket; c = MPI.COMM_WORLD; "
    "print('rank', c.rank, 'of', c.size, 'on', socket.gethostname(), flush=True); c.Barrier()"
)
# Every rank says that it is there and then waits in a collective that never completes.
WAIT = (
    "from mpi4py import MPI; import time; c = MPI.COMM_WORLD; c.Barrier(); "
    "print('all', c.size, 'here', flush=True) if c.rank == 0 else time.sleep(600); c.Barrier()"
)
UID = 12345
ROOT = Path(__file__).parents[2]
builds = pytest.mark.parametrize("mpi", BUILDS)
two_builds = pytest.mark.parametrize(
    "mpi", [*CHOSEN, *by_hand(b for b in BUILDS if b not in CHOSEN)]
)


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


@pytest.mark.parametrize("mpi", [*BUILDS, *(d.name for d in DISTRIBUTIONS if d.name not in BUILDS)])
def test_longest_name_of_a_job_crashes_no_mpi(mpi: str) -> None:
    """W-7: from 48 letters on Open MPI 4 smashed its stack."""
    name = "x" * 54
    ended = run("run", "-w", "2", "--name", name, "--mpi", mpi, "--", "hostname")
    assert ended.returncode == 0, ended.stderr
    said = sorted(ended.stdout.splitlines())
    assert said == [f"[{rank}] {name}-worker-{rank}" for rank in range(2)]


@two_builds
def test_no_worker_of_many_has_to_start_another(mpi: str) -> None:
    """They hold no key; Intel MPI starts a tree of hosts from 17 on."""
    ended = run("run", "-w", "17", "-s", "1", "--mpi", mpi, "--", "hostname")
    assert ended.returncode == 0, ended.stderr
    assert "17 ranks on 17 hosts" in ended.stderr


@two_builds
def test_runs_in_a_row_all_succeed_and_leave_nothing(mpi: str) -> None:
    """Two here; `make soak` does twenty."""
    for _ in range(int(os.environ.get("RUNS", "2"))):
        ended = run("run", "-w", "4", "-s", "2", "--mpi", mpi, "--", "python", "-c", HELLO)
        assert ended.returncode == 0, ended.stderr
        assert "8 ranks on 4 hosts" in ended.stderr


@builds
def test_a_failing_program_fails_the_job_and_names_the_rank(mpi: str) -> None:
    """OBS-2: exit 1, and the table says of the rank that called MPI_Abort that it did.

    Hydra may end all ranks before one has left a record of its end."""
    program = "from mpi4py import MPI; c = MPI.COMM_WORLD; c.Barrier(); c.rank == 1 and c.Abort(42)"
    ended = run("run", "-w", "2", "--mpi", mpi, "--", "python", "-c", program)
    assert ended.returncode == 1
    assert "Failed" in ended.stderr
    assert "exit code 42" in ended.stderr
    assert re.search(r"(?m)^1 .* (exit code 42|MPI_Abort\(42\))$", ended.stderr), ended.stderr
    assert re.search(r"(?m)^0 .* \S+$", ended.stderr)


def test_a_success_without_a_rank_is_warned_about() -> None:
    """W-9"""
    plain = ("run", "--as-is", "--mpi", "mpich")
    assert "warning: MPI started no rank" in run(*plain, "--", "true").stderr
    assert run(*plain, "-q", "--", "true").stderr == ""


@two_builds
def test_ctrl_c_stops_the_job_and_cleans_up(mpi: str) -> None:
    job = Run("run", "-w", "2", "-s", "2", "--mpi", mpi, "--", "python", "-c", WAIT)
    job.until_printed("all 4 here")
    job.signal(signal.SIGINT)
    ended = job.end()
    assert ended.returncode == 130
    assert "Stopped" in ended.stderr


@two_builds
def test_kill_9_of_mpirun_fails_the_job(mpi: str) -> None:
    job = Run("run", "-w", "2", "--mpi", mpi, "--", "python", "-c", WAIT)
    job.until_printed("all 2 here")
    # The oldest process whose program is the launcher itself; helpers of it come later.
    os.kill(job.pids(r"^\S*(mpirun|mpiexec|prterun|mpiexec\.hydra)\b")[0], signal.SIGKILL)
    ended = job.end()
    assert ended.returncode == 1
    # Intel's mpirun is a shell script around the real one, and shells say 128 + 9.
    assert re.search(r"Launcher job-launcher ended with (signal 9|exit code 137)", ended.stderr)


@two_builds
def test_kill_9_of_one_rank_fails_the_job(mpi: str) -> None:
    job = Run("run", "-w", "2", "--mpi", mpi, "--", "python", "-c", WAIT)
    job.until_printed("all 2 here")
    os.kill(job.pids(r"^python -c from mpi4py")[-1], signal.SIGKILL)
    ended = job.end()
    assert ended.returncode == 1
    assert "signal 9" in ended.stderr


@two_builds
def test_kill_9_of_one_workers_sshd_fails_the_job_and_names_the_worker(mpi: str) -> None:
    job = Run("run", "-w", "2", "--mpi", mpi, "--", "python", "-c", WAIT)
    job.until_printed("all 2 here")
    listeners = job.pids(r"sshd.* -D -e .*listener")
    assert len(listeners) == 2
    os.kill(listeners[-1], signal.SIGKILL)
    ended = job.end()
    assert ended.returncode == 1
    assert "Worker job-worker-" in ended.stderr and "signal 9" in ended.stderr


@two_builds
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


@pytest.mark.skipif(os.getuid() != 0, reason="this whole file already runs as an ordinary user")
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_an_ordinary_user_runs_the_same_job(mpi: str, home: Path) -> None:
    """No root, no container engine: the caller's own uid in a user namespace."""
    distribution = named(mpi)
    assert distribution is not None
    shutil.copytree(distribution.prefix, home / "mpi-trainer/mpi" / distribution.prefix.name)
    become = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "/usr/bin/python3"]
    odh = ["-c", "from mpi_trainer.cli.main import main; main()"]
    ended = subprocess.run(
        [*become, *odh, *f"run -w 2 -s 2 --mpi {mpi} --".split(), "python3", "-c", HELLO],
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(home),
            "XDG_DATA_HOME": str(home),
            "PYTHONPATH": ":".join((str(ROOT / "src"), sysconfig.get_path("purelib"))),
        },
        cwd=home,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    assert "4 ranks on 2 hosts" in ended.stderr


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory that an ordinary user can reach; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chown(folder, UID, UID)
        yield Path(folder)


def test_an_ssh_session_begins_at_the_root() -> None:
    """Open MPI reads a .profile where it begins, and a user's own is no part of the job."""
    ask = "ssh -F /run/mpi-agent/ssh/config probe-worker-0 pwd"
    ended = run("run", "-w", "1", "--name", "probe", "--as-is", "--", "sh", "-c", ask)
    assert (ended.returncode, ended.stdout) == (0, "/\n"), ended.stderr
