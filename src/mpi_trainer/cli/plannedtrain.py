"""What a controller would make of a TrainJob and its runtime, by the controller's own functions."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation import compatibility
from mpi_trainer.cli.planned import scripts
from mpi_trainer.render.frame import Object
from mpi_trainer.render.trainjob import children as render
from mpi_trainer.render.trainjob import snapshots


class PlannedTrain(msgspec.Struct, frozen=True):
    """A job and its objects. The Secret is without its keys; None where the job has no keys."""

    job: TrainJob
    snapshot: Object
    children: render.Children
    secret: Object | None
    scripts: Object | None

    def __iter__(self) -> Iterator[Object]:
        """In the order in which they are created."""
        if self.scripts is not None:
            yield self.scripts
        yield self.snapshot
        if self.children.config_map is not None:
            yield self.children.config_map
        if self.secret is not None:
            yield self.secret
        yield self.children.job_set


def of(job: TrainJob, runtime: Runtime, domain: str = "") -> PlannedTrain:
    """InvalidJob where the two do not go together."""
    wrong = compatibility.errors(job, runtime)
    if wrong:
        raise InvalidJob(wrong)
    made = render.rendered(job, runtime, domain)
    keyless = None if made.keys is None else made.keys.made({})
    if keyless is not None:
        del keyless["data"]
    shared = None if made.layout is None else scripts(made.layout)
    return PlannedTrain(job, snapshots.snapshot(job, runtime), made.children, keyless, shared)
