"""How fast Allreduce is, by the size of the message.

`bandwidth` is what the caller sees: bytes of the message by time. `bus` counts what each rank has
to send and receive for it, 2 * (n - 1) / n times the message, and is the figure to compare with
the network's speed.
"""

import sys

import numpy as np
from mpi4py import MPI

SIZES = [2**power for power in range(3, 25, 3)]  # 8 B to 16 MiB
SECONDS = 0.2  # of measuring, a size

world = MPI.COMM_WORLD


def measure(size):
    """The time of one Allreduce of `size` bytes: the mean over many, of the slowest rank."""
    message = np.ones(size // 8)
    total = np.empty_like(message)
    once = timed(message, total, 2)
    repeats = world.bcast(max(2, min(1000, int(SECONDS / once))), root=0)
    seconds = timed(message, total, repeats)
    if not np.all(total == world.size):
        sys.exit(f"rank {world.rank}: the sum of {size} bytes is wrong")
    return seconds


def timed(message, total, repeats):
    world.Barrier()
    start = MPI.Wtime()
    for _ in range(repeats):
        world.Allreduce(message, total)
    return world.allreduce(MPI.Wtime() - start, op=MPI.MAX) / repeats


def main():
    if world.rank == 0:
        name, version = MPI.get_vendor()
        print(
            f"Allreduce over {world.size} ranks, {name} {'.'.join(map(str, version))}", flush=True
        )
        print(f"{'bytes':>10} {'time us':>10} {'bandwidth MB/s':>15} {'bus MB/s':>10}", flush=True)
    for size in SIZES:
        seconds = measure(size)
        speed = size / seconds / 1e6
        bus = speed * 2 * (world.size - 1) / world.size
        if world.rank == 0:
            print(f"{size:>10} {seconds * 1e6:>10.1f} {speed:>15.1f} {bus:>10.1f}", flush=True)


if __name__ == "__main__":
    main()
