"""A rank that is well, in the way that its first word says."""

import os
import subprocess
import sys
import time
from collections.abc import Callable

FIRST_RANK = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK")) == "0"
if sys.argv[1] == "slow-start" and FIRST_RANK:
    time.sleep(float(sys.argv[2]))  # data is read before MPI is started, on one rank only

from mpi4py import MPI  # noqa: E402

comm = MPI.COMM_WORLD


def slow_finish() -> None:
    """Ranks may end far apart: nobody waits for those that are done."""
    time.sleep(2.0 * comm.rank)


def chatty() -> None:
    for line in range(3000):
        print(f"step {line}: loss {1 / (line + 1):.4f}", flush=line % 100 == 0)


def forking() -> None:
    """A data loader: children that come and go, one of which outlives a signal."""
    for _ in range(3):
        child = os.fork()
        if child == 0:
            time.sleep(0.2)
            os._exit(0)
        os.waitpid(child, 0)
    orphan = os.fork()
    if orphan == 0:
        os.setsid()
        time.sleep(0.5)
        os._exit(0)


def failing_children() -> None:
    """A probe that fails is a question answered with no."""
    for command in (["false"], ["sh", "-c", "exit 7"], ["sh", "-c", "kill -9 $$"]):
        assert subprocess.run(command, check=False).returncode != 0
    raising = [sys.executable, "-c", "raise RuntimeError('not the rank')"]
    assert subprocess.run(raising, check=False, capture_output=False).returncode == 1


def caught_exceptions() -> None:
    import traceback

    try:
        raise ValueError("this one is expected")
    except ValueError:
        traceback.print_exc()


def words_of_failure() -> None:
    print("Traceback (most recent call last):")
    print("RuntimeError: just a line of a log")
    print("error: 0 errors, Segmentation fault, Killed, MPI_ABORT was invoked on rank 1")
    print("ORTE has lost communication with a remote daemon", file=sys.stderr)


def stdin() -> None:
    """mpirun gives its standard input to rank 0."""
    if comm.rank == 0:
        assert int(sys.stdin.readline()) == 41


def long() -> None:
    """One rank computes without MPI, and the others wait for it."""
    if comm.rank == 1:
        until = time.monotonic() + float(sys.argv[2])
        while time.monotonic() < until:
            sum(range(10_000))
            time.sleep(0.2)


KINDS: dict[str, Callable[[], object]] = {
    "quiet": lambda: time.sleep(1.0),
    "slow-start": lambda: None,
    "slow-finish": slow_finish,
    "chatty": chatty,
    "forking": forking,
    "failing-children": failing_children,
    "caught-exceptions": caught_exceptions,
    "words-of-failure": words_of_failure,
    "stdin": stdin,
    "long": long,
}

kind = sys.argv[1]
comm.Barrier()
KINDS[kind]()
if kind != "slow-finish":
    assert comm.allreduce(1) == comm.size
