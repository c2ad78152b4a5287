"""The program of both ranks of a smoke run: an allreduce, latency and bandwidth between them.

It runs alone in an image, with its own Python and mpi4py, so it imports nothing else of ours. Each
fact is a line that begins with `mpi-trainer-check `. Danger: both ranks must make the same calls,
so only numbers that they agree on decide how many those are.
"""

import os
import sys
import time
from array import array
from typing import Any

SECONDS = 1.0
"""that each measurement may take"""
SMALL, LARGE = 8, 4 * 1024 * 1024
FEWEST, MOST = 10, 10_000


def fact(*words: object) -> None:
    print("mpi-trainer-check", *words, flush=True)


def round_trips(world: Any, size: int, count: int) -> float:
    """Seconds for so many messages there and back."""
    data = bytearray(size)
    world.Barrier()
    began = time.perf_counter()
    for _ in range(count):
        if world.rank == 0:
            world.Send(data, dest=1)
            world.Recv(data, source=1)
        else:
            world.Recv(data, source=0)
            world.Send(data, dest=0)
    return time.perf_counter() - began


def seconds_per_trip(world: Any, size: int) -> float:
    """Of one message there and back, after some that only warm up."""
    first = world.bcast(round_trips(world, size, FEWEST), root=0) / FEWEST
    count = int(min(max(SECONDS / max(first, 1e-9), FEWEST), MOST))
    return round_trips(world, size, count) / count


def sum_is_right(world: Any) -> bool:
    numbers = array("d", [world.rank + 1.0] * 1024)
    total = array("d", [0.0] * 1024)
    world.Allreduce(numbers, total)
    return all(number == world.size * (world.size + 1) / 2 for number in total)


def measure(world: Any, library: str) -> int:
    fact(
        "library",
        world.rank,
        os.uname().nodename,
        library.split("\n")[0].split(",")[0].strip("\0 ")[:120],
    )
    if world.size != 2:
        fact("size", world.size)
        return 1
    right = sum_is_right(world)
    if not right or world.rank == 0:
        fact("allreduce", "right" if right else "wrong")
    if not right:
        return 1
    latency = seconds_per_trip(world, SMALL) / 2
    bandwidth = 2 * LARGE / seconds_per_trip(world, LARGE)
    if world.rank == 0:
        fact("latency", f"{latency:.9f}")
        fact("bandwidth", f"{bandwidth:.0f}")
    return 0


if __name__ == "__main__":
    from mpi4py import MPI

    sys.exit(measure(MPI.COMM_WORLD, MPI.Get_library_version()))
