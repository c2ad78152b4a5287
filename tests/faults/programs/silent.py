"""A rank that works for some seconds without a word, in the way that its first word says."""

import os
import subprocess
import sys
import time
from collections.abc import Callable

from mpi4py import MPI

comm, seconds = MPI.COMM_WORLD, float(sys.argv[2])
comm.Barrier()
end = time.monotonic() + seconds


def computes() -> None:
    """One rank does, in Python; the others wait for it in a collective."""
    while comm.rank == 1 and time.monotonic() < end:
        sum(range(10_000))


def one_call() -> None:
    """All compute in a single call, as in a large factorization."""
    sum(range(int(seconds * 1e7)))


def collectives() -> None:
    """One line, one collective, again and again."""
    while comm.bcast(time.monotonic() < end):
        pass


def ring() -> None:
    """Bytes: Debian's Open MPI 4 fails now and then where sendrecv passes objects."""
    going, to, came = True, (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    while going:
        going = comm.bcast(time.monotonic() < end)
        comm.Sendrecv(bytearray(8), to, recvbuf=bytearray(8), source=came)


def children() -> None:
    """What is started works, and the rank waits for it."""
    work = f"import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"
    if comm.rank == 1:
        subprocess.run([sys.executable, "-c", work], check=True)


def writes() -> None:
    """Checkpoints, and hardly any CPU."""
    file = os.open(os.devnull, os.O_WRONLY)
    while comm.rank == 1 and time.monotonic() < end:
        os.write(file, b"x" * 4096)
        time.sleep(0.5)


def prints_seldom() -> None:
    while comm.rank == 1 and time.monotonic() < end:
        print("still at it", flush=True)
        time.sleep(1.5)


KINDS: dict[str, Callable[[], None]] = {
    "computes": computes,
    "one-call": one_call,
    "collectives": collectives,
    "ring": ring,
    "children": children,
    "writes": writes,
    "prints-seldom": prints_seldom,
}

KINDS[sys.argv[1]]()
assert comm.allreduce(1) == comm.size
