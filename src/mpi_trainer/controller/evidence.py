"""What a launcher pod testifies of its ranks, in the agent's summary. Pure."""

from __future__ import annotations

from mpi_trainer.controller.objects import Pod
from mpi_trainer.decide import RankSeen

__all__ = ["RankSeen", "ranks"]


def ranks(pod: Pod, attempt: int) -> tuple[RankSeen, ...]:
    """None where the agent was off or said nothing; then the exit code is all there is."""
    return ()
