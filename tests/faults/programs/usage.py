"""A program that takes one option."""

import argparse

from mpi4py import MPI

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.parse_args()
MPI.COMM_WORLD.Barrier()
