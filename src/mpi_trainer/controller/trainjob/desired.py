"""What a TrainJob's children should be: its runtime and itself, put together and rendered. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mpi_trainer.api.effective.combine import Effective
from mpi_trainer.api.kinds.annotations import RENDERED
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.controller.dependents import WantedDependents
from mpi_trainer.kube.resources import CONFIGMAPS
from mpi_trainer.layout.model import Layout
from mpi_trainer.render import agent_scripts
from mpi_trainer.render.frame import Facts
from mpi_trainer.render.gang import pod_groups
from mpi_trainer.render.secrets import KeyPlan
from mpi_trainer.render.trainjob import children as render
from mpi_trainer.render.trainjob.children import Children


class Desired(msgspec.Struct, frozen=True):
    job: TrainJob
    effective: Effective
    layout: Layout | None
    children: Children
    keys: KeyPlan | None = None
    runtime_annotations: Mapping[str, str] = {}
    without_effect: str = ""

    @property
    def rendered(self) -> str:
        """The mark of what the JobSet is made from."""
        mark: str = self.children.job_set["metadata"]["annotations"][RENDERED]
        return mark

    @property
    def dependents(self) -> WantedDependents | None:
        made = (self.children.config_map, self.children.trust)
        maps = [one for one in made if one is not None]
        if not maps:
            return None
        first, *others = maps
        return WantedDependents(
            config_map=first,
            others=tuple((CONFIGMAPS, one) for one in others),
            parts=frozenset() if self.keys is None else self.keys.parts,
            secret=None if self.keys is None else self.keys.made,
            scripts=self._scripts,
        )

    @property
    def _scripts(self) -> bool:
        """Whether its pods read the agent's, and are to start now."""
        if self.layout is None or self.job.spec.suspend:
            return False
        return bool(agent_scripts.mark(self.layout.launcher))


def desired(job: TrainJob, runtime: Runtime, facts: Facts) -> Desired:
    """InvalidJob where the runtime's own template is in the children's way."""
    made = render.rendered(job, runtime, facts)
    notes, unused = runtime.metadata.annotations, _without_effect(runtime, facts)
    return Desired(job, made.effective, made.layout, made.children, made.keys, notes, unused)


def _without_effect(runtime: Runtime, facts: Facts) -> str:
    """What the runtime asks for and the cluster cannot do."""
    scheduler = pod_groups.trainjob_scheduler(runtime)
    if scheduler is None or scheduler.group in facts.gang.served:
        return ""
    where = f"podGroupPolicy.{scheduler.name} of runtime {runtime.name}"
    return f"{where}: {scheduler.unserved}; {scheduler.install}"
