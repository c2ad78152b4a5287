"""What each `mlPolicy` gives the nodes of a TrainJob: one file per policy; MPI has its own Layout.

A policy without variables is not in `VARIABLES`. Adding one that only sets variables is one file
and one line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from mpi_trainer.api.effective.combine import Effective
from mpi_trainer.api.kinds.runtime import JAX, TORCH, XGBOOST
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.layout.policies import flux, jax, torch, xgboost
from mpi_trainer.layout.policies.first_node import Variable

__all__ = ["VARIABLES", "flux", "variables"]

VARIABLES: Final[Mapping[str, Callable[[Effective], tuple[Variable, ...]]]] = {
    TORCH: torch.variables,
    JAX: jax.variables,
    XGBOOST: xgboost.variables,
}


def variables(job: TrainJob, effective: Effective) -> tuple[Variable, ...]:
    """Those by which a node finds the others, less what the job sets itself: of JAX it may."""
    found = VARIABLES.get(effective.policy)
    own = {one.get("name") for one in job.trainer.env}
    return tuple(v for v in found(effective) if v["name"] not in own) if found else ()
