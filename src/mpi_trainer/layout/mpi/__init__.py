"""The MPI implementations. Adding one: a file, a line in REGISTRY, a folder of goldens."""

from __future__ import annotations

from mpi_trainer.layout.mpi import intel, mpich, openmpi
from mpi_trainer.layout.mpi.model import RANK_MARK, MpiImpl, MpiSettings

REGISTRY: tuple[MpiImpl, ...] = (openmpi.IMPL, intel.IMPL, mpich.IMPL)


def implementation(name: str) -> MpiImpl:
    """The implementation of that name; validation has refused every other name before."""
    return next(impl for impl in REGISTRY if impl.name == name)


__all__ = ["RANK_MARK", "REGISTRY", "MpiImpl", "MpiSettings", "implementation"]
