"""`odh run` where namespaces are forbidden: plain processes on the machine's own loopback."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_trainer.local.mpi.distributions import WHEELS
from tests.local.odh import Run, processes, run
from tests.local.ordinary import UID, OrdinaryUser, ordinary_user

BUILDS = [d.name for d in WHEELS if d.works_on_loopback]
SIZE = ("-w", "2", "-s", "2")
LOOPBACK = ("run", "--isolation", "loopback")
# The sum proves that data went through every rank.
HELLO = (
    "from mpi4py import MPI; c = MPI.COMM_WORLD; "
    "print('sum', c.allreduce(c.rank), 'of', c.size, flush=True)"
)
WAIT = (
    "from mpi4py import MPI; import time; c = MPI.COMM_WORLD; c.Barrier(); "
    "print('all', c.size, 'here', flush=True) if c.rank == 0 else time.sleep(600); c.Barrier()"
)

builds = pytest.mark.parametrize("mpi", BUILDS)
as_root = pytest.mark.skipif(os.getuid() != 0, reason="becomes another user")


@pytest.fixture
def user() -> Iterator[OrdinaryUser]:
    with ordinary_user() as someone:
        yield someone


def orphans() -> list[str]:
    """Processes that hold a file of a supervisor that is gone; sshd hides its environment."""
    found = []
    for pid in processes("", r"/mpi-trainer\.\d+\.\d+/"):
        words = Path("/proc", str(pid), "cmdline").read_bytes().decode()
        owner = re.search(r"/mpi-trainer\.(\d+)\.", words)
        if owner is not None and not Path("/proc", owner[1]).exists():
            found.append(words.replace("\0", " "))
    return found


@builds
def test_ranks_run_on_every_worker_and_exchange_data(mpi: str) -> None:
    """AC-3, where the machine gives no namespaces."""
    ended = run(*LOOPBACK, *SIZE, "--mpi", mpi, "-o", "json", "--", "python", "-c", HELLO)
    assert ended.returncode == 0, ended.stderr
    ranks = json.loads(ended.stdout)["ranks"]
    assert [(r["rank"], r["pod"], r["address"]) for r in ranks] == [
        (0, "job-worker-0", "127.0.0.3"),
        (1, "job-worker-0", "127.0.0.3"),
        (2, "job-worker-1", "127.0.0.4"),
        (3, "job-worker-1", "127.0.0.4"),
    ]
    assert ended.stderr.count("sum 6 of 4") == 4
    assert "workers share this machine's network and files" in ended.stderr
    assert orphans() == []


@as_root
@builds
def test_an_ordinary_user_runs_the_same_job(mpi: str, user: OrdinaryUser) -> None:
    user.install(mpi)
    words = (*LOOPBACK, *SIZE, "--mpi", mpi, "--", "python3", "-c", HELLO)
    ended = run(*words, cwd=user.home, program=user.with_account(), env=user.env)
    assert ended.returncode == 0, ended.stderr
    assert "4 ranks on 2 hosts" in ended.stderr
    assert orphans() == []


def test_two_jobs_at_once_do_not_meet() -> None:
    """The same job twice: the same names and addresses, and each its own port."""
    words = (*LOOPBACK, *SIZE, "--mpi", "mpich", "--", "python", "-c")
    waiting = Run(*words, WAIT)
    waiting.until_printed("all 4 here")
    ended = run(*words, HELLO)
    assert ended.returncode == 0, ended.stderr
    assert "4 ranks on 2 hosts" in ended.stderr
    waiting.signal(signal.SIGINT)
    assert waiting.end().returncode == 130
    assert orphans() == []


@as_root
def test_a_user_unknown_to_the_machine_is_refused_before_anything_starts(
    user: OrdinaryUser,
) -> None:
    ended = run(*LOOPBACK, "--mpi", "mpich", "--", "true", program=user.program, env=user.env)
    assert ended.returncode == 2
    assert f"uid {UID} has no entry in /etc/passwd" in ended.stderr
    assert "hint: Run as another user" in ended.stderr
    assert not (user.home / "mpi-trainer").exists(), "nothing was installed either"


@as_root
def test_a_user_without_a_shell_is_refused(user: OrdinaryUser) -> None:
    program = user.with_account(shell="/usr/sbin/nologin")
    ended = run(*LOOPBACK, "--mpi", "mpich", "--", "true", program=program, env=user.env)
    assert ended.returncode == 2
    assert "the login shell of tester is /usr/sbin/nologin" in ended.stderr


def test_a_mount_elsewhere_needs_namespaces_and_says_what_to_use(tmp_path: Path) -> None:
    words = ("--mpi", "mpich", "--mount", f"{tmp_path}:/data", "--", "ls", "/data")
    ended = run(*LOOPBACK, *words)
    assert ended.returncode == 2
    assert "mountPath /data: needs namespaces" in ended.stderr
    assert f"use the path of the source, {tmp_path}" in ended.stderr


def test_a_mount_at_its_own_path_works(tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    words = ("--mpi", "mpich", "--mount", f"{tmp_path}:{tmp_path}", "--", "ls", str(tmp_path))
    ended = run(*LOOPBACK, *words)
    assert ended.returncode == 0, ended.stderr
    assert "here" in ended.stdout


def test_open_mpi_5_is_replaced_by_4_or_refused_by_name() -> None:
    ended = run(*LOOPBACK, "--dry-run", "--", "true")
    assert "Open MPI 4" in ended.stdout
    refused = run(*LOOPBACK, "--mpi", "openmpi", "--", "true")
    assert refused.returncode == 2
    assert "Use --mpi openmpi4" in refused.stderr


def test_kill_9_of_odh_leaves_nothing() -> None:
    job = Run(*LOOPBACK, *SIZE, "--mpi", "mpich", "--", "python", "-c", WAIT)
    job.until_printed("all 4 here")
    job.signal(signal.SIGKILL)
    assert job.end().returncode == -signal.SIGKILL
    assert orphans() == []
