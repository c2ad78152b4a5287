"""What a job's children should be: its Layout rendered, with this controller's marks. Pure."""

from __future__ import annotations

import msgspec

from mpi_trainer.api.kinds.annotations import WORKERS
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.controller.dependents import WantedDependents
from mpi_trainer.kube.resources import SERVICES
from mpi_trainer.layout.model import Layout
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.render import agent_scripts
from mpi_trainer.render.mpijob import children as render
from mpi_trainer.render.mpijob.children import Children, Facts
from mpi_trainer.render.secrets import Part


class Desired(msgspec.Struct, frozen=True):
    job: MPIJob
    layout: Layout
    children: Children

    @property
    def dependents(self) -> WantedDependents:
        return WantedDependents(
            config_map=self.children.config_map,
            others=((SERVICES, self.children.service),),
            parts=parts(self.layout),
            secret=lambda keys: render.secret(self.layout, self.job, keys),
            scripts=bool(agent_scripts.mark(self.layout.launcher)) and not self._rests,
        )

    @property
    def _rests(self) -> bool:
        return bool(self.job.spec.run_policy.suspend)


def parts(layout: Layout) -> frozenset[Part]:
    """The parts of the job's key pairs that some pod is given."""
    return frozenset(key.part for pod in layout.pods for key in pod.keys)


def desired(job: MPIJob, facts: Facts) -> Desired:
    """InvalidJob where the job's own template is in the children's way."""
    plan = layout(job, facts.domain)
    made = render.children(plan, job, facts)
    annotations = made.launcher_job["spec"]["template"]["metadata"].setdefault("annotations", {})
    annotations[WORKERS] = str(job.workers)
    return Desired(job, plan, made)
