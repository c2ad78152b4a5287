"""The variables by which `jax.distributed.initialize` finds the other nodes. Upstream's names.

One process per node, whatever the job says of processes: JAX itself takes all devices of a node.
"""

from __future__ import annotations

from mpi_trainer.api.effective.combine import Effective
from mpi_trainer.layout.policies.first_node import PORT, Variable, address, index, value


def variables(effective: Effective) -> tuple[Variable, ...]:
    return (
        value("JAX_NUM_PROCESSES", str(effective.nodes)),
        index("JAX_PROCESS_ID"),
        value("JAX_COORDINATOR_ADDRESS", f"{address(effective)}:{PORT}"),
    )
