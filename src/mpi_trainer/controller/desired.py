"""What a job's children should be: its Layout rendered, with this controller's marks. Pure."""

from __future__ import annotations

import msgspec

from mpi_trainer.api.mpijob import MPIJob
from mpi_trainer.controller import marks
from mpi_trainer.layout.model import Layout
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.render import mpijob as render
from mpi_trainer.render.mpijob import Children, Facts
from mpi_trainer.render.secrets import Part


class Desired(msgspec.Struct, frozen=True):
    layout: Layout
    children: Children

    @property
    def parts(self) -> frozenset[Part]:
        """The parts of the job's key pairs that some pod is given."""
        return frozenset(key.part for pod in self.layout.pods for key in pod.keys)


def desired(job: MPIJob, attempt: int, domain: str) -> Desired:
    """InvalidJob where the job's own template is in the children's way."""
    plan = layout(job, domain)
    made = render.children(plan, job, Facts(attempt=attempt, domain=domain))
    annotations = made.launcher_job["spec"]["template"]["metadata"].setdefault("annotations", {})
    annotations[marks.JOB_UID] = job.metadata.uid
    annotations[marks.WORKERS] = str(job.workers)
    return Desired(plan, made)
