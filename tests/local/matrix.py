"""Which MPI builds a test runs with: two that differ in everything, or all with `MPIS=all`."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet

from mpi_trainer.local.mpi.distributions import DISTRIBUTIONS

ALL = os.environ.get("MPIS") == "all"
CHOSEN = [distribution.name for distribution in DISTRIBUTIONS] if ALL else ["openmpi", "mpich"]


def by_hand(names: Iterable[str]) -> list[ParameterSet]:
    """Further builds, which `make local` runs and CI leaves out."""
    return [pytest.param(name, marks=pytest.mark.full) for name in names]


mpis = pytest.mark.parametrize("mpi", CHOSEN)
any_mpi = pytest.mark.parametrize("mpi", [CHOSEN[0], *by_hand(CHOSEN[1:])])
"""for what our own code does, whatever the MPI"""
