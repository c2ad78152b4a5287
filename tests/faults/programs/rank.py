"""A rank that does what its first word says: most words are a way to go wrong on rank 1.

Every rank meets the others once before; `/state/running` tells the test that they have. Ranks
that do not go wrong wait for the others, as ranks of a training do.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from mpi4py import MPI

VICTIM = 1
RUN_SECONDS = 200.0
comm = MPI.COMM_WORLD


def work(seconds: float) -> None:
    """A training: short steps that end together."""
    until = comm.bcast(time.monotonic() + seconds)
    while comm.allreduce(time.monotonic(), MPI.MIN) < until:
        time.sleep(0.05)


def raise_error() -> None:
    raise RuntimeError("the loss is not a number")


def fill_memory() -> None:
    held = []
    while True:
        held.append(bytearray(os.urandom(1) * (16 << 20)))


FAULTS: dict[str, Callable[[], object]] = {
    "exit-nonzero": lambda: os._exit(3),
    "mpi-abort": lambda: comm.Abort(42),
    "mpi-error-truncate": lambda: comm.Recv(bytearray(1), source=0),
    "oom-kill": fill_memory,
    "python-traceback": raise_error,
    "rank-sigkill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "rank-sigterm": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "segfault": lambda: ctypes.string_at(0),
    "sys-exit": lambda: sys.exit(3),
}

word = sys.argv[1]
comm.Barrier()
if comm.rank == 0:
    Path("/state/running").touch()
if word == "hello":
    print(f"rank {comm.rank} of {comm.size}", flush=True)
    sys.exit(0)
if word in ("run", "work"):
    work(RUN_SECONDS if word == "run" else 12.0)
    sys.exit(0)
time.sleep(0.3)
if comm.rank == VICTIM:
    FAULTS[word]()
if word == "mpi-error-truncate" and comm.rank == 0:
    comm.Send(bytearray(1000), dest=VICTIM)
comm.allreduce(1)
time.sleep(RUN_SECONDS)
