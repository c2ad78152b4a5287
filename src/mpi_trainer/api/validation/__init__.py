"""Whether a job makes sense: every rule of the public operator, and what it misses.

`errors` takes a job with its defaults applied and finds everything at once; it never raises.
What would run upstream is accepted here; what could only hang or loop there is refused.
`warnings` names what is legal and probably not meant. One file per area.
"""

from __future__ import annotations

from mpi_trainer.api.errors import FieldError
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.validation import (
    likely_mistakes,
    metadata,
    network,
    own_annotations,
    policies,
    replicas,
)

__all__ = ["errors", "warnings"]


def errors(job: MPIJob) -> tuple[FieldError, ...]:
    return (
        *metadata.errors(job),
        *own_annotations.errors(job.metadata.annotations),
        *network.errors(job),
        *policies.errors(job),
        *replicas.errors(job),
    )


def warnings(job: MPIJob) -> tuple[FieldError, ...]:
    return tuple(likely_mistakes.warnings(job))
