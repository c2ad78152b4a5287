"""What a TrainJob's children should be: its runtime and itself, put together and rendered. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mpi_trainer.api.effective import Effective
from mpi_trainer.api.errors import FieldError
from mpi_trainer.api.runtime import Runtime
from mpi_trainer.api.trainjob import TrainJob
from mpi_trainer.api.validation import ineffective
from mpi_trainer.controller.desired import parts
from mpi_trainer.controller.furniture import Pieces
from mpi_trainer.layout.model import Layout
from mpi_trainer.render import agentscripts
from mpi_trainer.render import trainjob as render
from mpi_trainer.render.jobsets import RENDERED
from mpi_trainer.render.trainjob import Children


class Desired(msgspec.Struct, frozen=True):
    job: TrainJob
    effective: Effective
    layout: Layout | None
    children: Children
    wishes: Mapping[str, str] = {}
    unused: tuple[FieldError, ...] = ()

    @property
    def rendered(self) -> str:
        """The mark of what the JobSet is made from."""
        mark: str = self.children.job_set["metadata"]["annotations"][RENDERED]
        return mark

    @property
    def pieces(self) -> Pieces | None:
        plan, texts = self.layout, self.children.config_map
        if plan is None or texts is None:
            return None
        return Pieces(
            config_map=texts,
            parts=parts(plan),
            secret=lambda keys: render.secret(plan, self.job, keys),
            scripts=bool(agentscripts.mark(plan.launcher)) and not self.job.spec.suspend,
        )


def desired(job: TrainJob, runtime: Runtime, domain: str) -> Desired:
    """InvalidJob where the runtime's own template is in the children's way."""
    made = render.rendered(job, runtime, domain)
    wishes, unused = runtime.metadata.annotations, tuple(ineffective.of_runtime(runtime))
    return Desired(job, made.effective, made.layout, made.children, wishes, unused)
