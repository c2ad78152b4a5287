"""Training that goes on where it was when a rank, a worker or the whole job was lost.

Every rank holds all weights, and the momentum of its own share of them alone. So each rank has a
part to save: its share of both. All that is random comes from the number of the step, so that an
attempt that goes on makes the very steps that the one before it would have made.
"""

import argparse
import sys
import time

import numpy as np
from mpi4py import MPI

from openshift_ai_sdk.checkpoints import Checkpoints

FEATURES = 64
BATCH = 256
RATE = 0.01

world = MPI.COMM_WORLD


def batch(step, truth):
    """This rank's samples of a step, and what the network should say of them."""
    random = np.random.default_rng((step, world.rank))
    points = random.normal(size=(BATCH, FEATURES))
    return points, points @ truth + random.normal(0.0, 0.1, size=BATCH)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", default="checkpoints")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that a step takes longer")
    given = parser.parse_args()

    truth = np.random.default_rng(1).normal(size=FEATURES)
    weights = np.zeros(FEATURES)
    share = np.array_split(np.arange(FEATURES), world.size)[world.rank]
    momentum, done = np.zeros(len(share)), 0

    checkpoints = Checkpoints(
        given.folder,
        rank=world.rank,
        size=world.size,
        every=given.every,
        agree=lambda number: world.allreduce(number, op=MPI.MIN),
    )
    found = checkpoints.newest()
    if found:
        if found.size != world.size:
            sys.exit(f"{found.folder} is of {found.size} ranks, and these are {world.size}")
        stored, done = found.arrays(), found.step
        weights, momentum = np.concatenate(world.allgather(stored["weights"])), stored["momentum"]
    if world.rank == 0:
        print(f"attempt {checkpoints.attempt} begins after step {done}", flush=True)

    while done < given.steps:
        points, wanted = batch(done, truth)
        error = points @ weights - wanted
        slope = world.allreduce(points.T @ error) / (BATCH * world.size)
        loss = world.allreduce(float(error @ error)) / (BATCH * world.size)
        momentum = 0.9 * momentum + slope[share]
        weights = np.concatenate(world.allgather(weights[share] - RATE * momentum))
        done += 1
        if world.rank == 0:
            print(f"step {done}/{given.steps} loss {loss:.9f}", flush=True)
        if checkpoints.due(done):
            checkpoints.save(done, {"weights": weights[share], "momentum": momentum})
        if checkpoints.asked_to_stop:
            if world.rank == 0:
                print(f"stopped after step {done}, which is saved", flush=True)
            sys.exit(143)
        time.sleep(given.pause)


if __name__ == "__main__":
    main()
