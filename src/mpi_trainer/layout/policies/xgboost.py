"""The variables by which XGBoost's workers find their tracker on the first node. Upstream's names.

A node has one worker for each of its GPUs, and one where it has none.
"""

from __future__ import annotations

from mpi_trainer.api.effective.combine import Effective
from mpi_trainer.layout.policies.first_node import PORT, Variable, address, index, value


def variables(effective: Effective) -> tuple[Variable, ...]:
    return (
        value("DMLC_TRACKER_URI", address(effective)),
        value("DMLC_TRACKER_PORT", str(PORT)),
        index("DMLC_TASK_ID"),
        value("DMLC_NUM_WORKER", str(effective.nodes * effective.slots)),
    )
