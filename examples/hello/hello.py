"""Every rank says who it is and where it runs."""

import platform

from mpi4py import MPI

world = MPI.COMM_WORLD
print(f"hello from rank {world.rank} of {world.size} on {platform.node()}", flush=True)
