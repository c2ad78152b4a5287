"""Every rank adds its share of the numbers in the volume; all get the sum."""

from pathlib import Path

from mpi4py import MPI

world = MPI.COMM_WORLD
numbers = [int(line) for line in Path("/data/numbers.txt").read_text().split()]
total = world.allreduce(sum(numbers[world.rank :: world.size]))
print(f"Rank {world.rank} of {world.size}: the sum is {total}", flush=True)
