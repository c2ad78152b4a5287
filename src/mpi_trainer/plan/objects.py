"""The objects that a controller would make for a job, by the controller's own functions. Pure.

Secrets are without their keys, which only a controller makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation import compatibility
from mpi_trainer.layout.model import Layout
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.render import agent_scripts
from mpi_trainer.render.frame import Facts, Object
from mpi_trainer.render.mpijob import children as mpijob_children
from mpi_trainer.render.trainjob import children as trainjob_children
from mpi_trainer.render.trainjob import snapshots

DEFAULT_NAMESPACE = "default"
GENERATED = "xxxxx"
"""stands for the letters that the API server puts behind a generateName"""

Named = TypeVar("Named", MPIJob, TrainJob, Runtime)

replace = msgspec.structs.replace
NO_FACTS = Facts()


class PlannedMPIJob(msgspec.Struct, frozen=True):
    job: MPIJob
    children: mpijob_children.Children
    secret: Object
    scripts: Object | None
    """shared by all jobs of the namespace; None where this one shares nothing"""

    def __iter__(self) -> Iterator[Object]:
        """In the order in which they are created."""
        made = self.children
        shared = () if self.scripts is None else (self.scripts,)
        yield from (*shared, *made.guards, made.service, made.config_map, self.secret)
        yield from (*made.workers, made.launcher_job)


class PlannedTrainJob(msgspec.Struct, frozen=True):
    job: TrainJob
    snapshot: Object
    children: trainjob_children.Children
    secret: Object | None
    """None where the job has no keys"""
    scripts: Object | None
    """shared by all jobs of the namespace; None where this one shares nothing"""

    def __iter__(self) -> Iterator[Object]:
        """In the order in which they are created."""
        made = (
            self.scripts,
            self.snapshot,
            *self.children.guards,
            self.children.config_map,
            self.secret,
            self.children.job_set,
        )
        yield from (one for one in made if one is not None)


def planned_mpijob(job: MPIJob, facts: Facts = NO_FACTS) -> PlannedMPIJob:
    """`facts`: what the controller's options say."""
    plan = layout(job, facts.domain)
    children = mpijob_children.children(plan, job, facts)
    keyless = mpijob_children.secret(plan, job, {})
    del keyless["data"]
    return PlannedMPIJob(job, children, keyless, _scripts(plan))


def planned_trainjob(job: TrainJob, runtime: Runtime, facts: Facts = NO_FACTS) -> PlannedTrainJob:
    """InvalidJob where job and runtime do not go together."""
    wrong = compatibility.errors(job, runtime)
    if wrong:
        raise InvalidJob(wrong)
    made = trainjob_children.rendered(job, runtime, facts)
    keyless = None if made.keys is None else made.keys.made({})
    if keyless is not None:
        del keyless["data"]
    scripts = None if made.layout is None else _scripts(made.layout)
    return PlannedTrainJob(job, snapshots.snapshot(job, runtime), made.children, keyless, scripts)


def _scripts(plan: Layout) -> Object | None:
    return agent_scripts.config_map(plan.namespace) if agent_scripts.mark(plan.launcher) else None


def named(one: Named, namespace: str) -> Named:
    """With the name and the namespace that it would have on the cluster."""
    meta = one.metadata
    name = meta.name or f"{meta.generate_name}{GENERATED}"
    where = meta.namespace or namespace or DEFAULT_NAMESPACE
    return replace(one, metadata=replace(meta, name=name, namespace=where))
