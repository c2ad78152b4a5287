"""What a controller would make of an MPIJob, by the controller's own functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.layout.model import Layout
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.render import agent_scripts
from mpi_trainer.render.mpijob.children import Children, Facts, Object, children, secret

DEFAULT_NAMESPACE = "default"
GENERATED = "xxxxx"
"""stands for the letters that the API server puts behind a generateName"""

Named = TypeVar("Named", MPIJob, TrainJob, Runtime)

replace = msgspec.structs.replace


class Planned(msgspec.Struct, frozen=True):
    """A job and its objects. The Secret is without its keys, which only a controller makes."""

    job: MPIJob
    children: Children
    secret: Object
    scripts: Object | None

    def __iter__(self) -> Iterator[Object]:
        """In the order in which they are created."""
        service, config_map, *pods = self.children
        shared = () if self.scripts is None else (self.scripts,)
        yield from (*shared, service, config_map, self.secret, *pods)


def of(job: MPIJob, domain: str = "", attempt: int = 1) -> Planned:
    plan = layout(job, domain)
    made = children(plan, job, Facts(attempt=attempt, domain=domain))
    keyless = secret(plan, job, {})
    del keyless["data"]
    return Planned(job, made, keyless, scripts(plan))


def scripts(plan: Layout) -> Object | None:
    """What it shares with the other jobs of its namespace; None where it shares nothing."""
    return agent_scripts.config_map(plan.namespace) if agent_scripts.mark(plan.launcher) else None


def named(one: Named, namespace: str) -> Named:
    """With the name and the namespace that it would have on the cluster."""
    meta = one.metadata
    name = meta.name or f"{meta.generate_name}{GENERATED}"
    where = meta.namespace or namespace or DEFAULT_NAMESPACE
    return replace(one, metadata=replace(meta, name=name, namespace=where))
