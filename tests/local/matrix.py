"""Which MPI builds a test runs with: two that differ in everything, or all with `MPIS=all`."""

from __future__ import annotations

import os

import pytest

from mpi_trainer.local.mpi.distributions import DISTRIBUTIONS

CHOSEN = (
    [distribution.name for distribution in DISTRIBUTIONS]
    if os.environ.get("MPIS") == "all"
    else ["openmpi", "mpich"]
)

mpis = pytest.mark.parametrize("mpi", CHOSEN)
