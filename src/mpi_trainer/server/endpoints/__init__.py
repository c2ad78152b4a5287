"""Every path of the API, as one table."""

from __future__ import annotations

from typing import Final

from mpi_trainer.server.endpoint import Endpoint
from mpi_trainer.server.endpoints import checks, choices, jobs, live, overview, plan

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    *choices.ENDPOINTS,
    *jobs.ENDPOINTS,
    *overview.ENDPOINTS,
    *plan.ENDPOINTS,
    *checks.ENDPOINTS,
)

STREAMS: Final = live.STREAMS
