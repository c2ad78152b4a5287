"""Allreduce of arrays on a GPU, staged through the host's memory, by two or more ranks:

    odh run -w 1 -s 2 -- python bench/gpu_allreduce.py [FILE]

Every rank fills an array on the device, copies it to the host, all sum there, and each copies the
sum back and compares it on the device with what it must be. Ranks may share a device, which NCCL
refuses. Times are of the slowest rank, the best of `ROUNDS`; rank 0 writes them to FILE as JSON.
Needs CuPy and mpi4py.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

import cupy  # type: ignore[import-not-found]
from mpi4py import MPI

SIZES = [2**power for power in (20, 24, 28)]
ROUNDS = 5


def measured(world: Any, rank: int, count: int) -> dict[str, Any]:
    """One size: bytes, seconds of the copies and of the sum, and whether the sum was right."""
    ranks = world.Get_size()
    device = cupy.full(count, rank + 1, dtype=cupy.float32)
    host = cupy.asnumpy(device)
    best = [float("inf")] * 3
    right = True
    for _ in range(ROUNDS):
        cupy.cuda.Device().synchronize()
        world.Barrier()
        started = time.perf_counter()
        host[:] = cupy.asnumpy(device)
        copied = time.perf_counter()
        world.Allreduce(MPI.IN_PLACE, host, MPI.SUM)
        summed = time.perf_counter()
        result = cupy.asarray(host)
        cupy.cuda.Device().synchronize()
        ended = time.perf_counter()
        right &= bool((result == ranks * (ranks + 1) / 2).all())
        mine = (copied - started, summed - copied, ended - summed)
        slowest = [world.allreduce(one, op=MPI.MAX) for one in mine]
        best = slowest if sum(slowest) < sum(best) else best
    everybody = world.allreduce(right, op=MPI.LAND)
    out, total, back = best
    return {"bytes": count * 4, "toHost": out, "allreduce": total, "back": back, "right": everybody}


def main() -> None:
    world = MPI.COMM_WORLD
    rank = world.Get_rank()
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"rank {rank} of {world.Get_size()} on {socket.gethostname()}: {name}", flush=True)
    rows = [measured(world, rank, size // 4) for size in SIZES]
    if rank == 0:
        for row in rows:
            whole = row["toHost"] + row["allreduce"] + row["back"]
            rate = row["bytes"] / whole / 1e9
            print(
                f"{row['bytes'] >> 20:5d} MiB  {whole * 1e3:9.2f} ms  {rate:6.2f} GB/s", flush=True
            )
        if len(sys.argv) > 1:
            library = MPI.Get_library_version().splitlines()[0].split(",")[0]
            about = {"device": name, "ranks": world.Get_size(), "mpi": library, "rows": rows}
            Path(sys.argv[1]).write_text(json.dumps(about, indent=1) + "\n")
    if not all(row["right"] for row in rows):
        sys.exit(f"rank {rank}: a sum is wrong")


if __name__ == "__main__":
    main()
