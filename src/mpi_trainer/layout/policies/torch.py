"""The variables by which torchrun finds the other nodes of a TrainJob. Upstream's to the letter."""

from __future__ import annotations

from mpi_trainer.api.effective.combine import AUTO, Effective
from mpi_trainer.layout.policies.first_node import PORT, Variable, address, index, value

MASTER = ("PET_MASTER_ADDR", "PET_MASTER_PORT")


def variables(effective: Effective) -> tuple[Variable, ...]:
    processes = "auto" if effective.slots == AUTO else str(effective.slots)
    return (
        value("PET_NNODES", str(effective.nodes)),
        value("PET_NPROC_PER_NODE", processes),
        index("PET_NODE_RANK"),
        value("PET_MASTER_ADDR", address(effective)),
        value("PET_MASTER_PORT", str(PORT)),
    )
