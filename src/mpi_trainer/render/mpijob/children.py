"""`children`: from an MPIJob and its Layout to every object that must exist for it.

The objects are plain data, sparse as a user would write them, ready for the API server. The Secret
is made apart, because its keys are. Rendering twice gives the same, whatever happened in between.
Danger: workers share what they have in common; do not change one of them in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from mpi_trainer.api.errors import FieldError, InvalidJob
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, MPIJob
from mpi_trainer.api.validation.volumes import CONFIG_VOLUME, SSH_VOLUME
from mpi_trainer.layout.model import Layout
from mpi_trainer.render import conflicts, names, network_policies, secrets
from mpi_trainer.render.configmaps import config_map
from mpi_trainer.render.frame import Facts, Frame, Names, Object, frame
from mpi_trainer.render.gang import pod_groups
from mpi_trainer.render.gang.model import Marks, PlannedGang
from mpi_trainer.render.mpijob.jobs import launcher_job
from mpi_trainer.render.mpijob.workers import workers
from mpi_trainer.render.secrets import Part
from mpi_trainer.render.services import service

__all__ = ["Children", "Facts", "Object", "children", "errors", "secret"]

_SPECS = ("spec", "mpiReplicaSpecs")
_PLACES = conflicts.Places((*_SPECS, LAUNCHER), (*_SPECS, WORKER), (*_SPECS, WORKER, "replicas"))


class Children(msgspec.Struct, frozen=True):
    service: Object
    config_map: Object
    workers: tuple[Object, ...]
    launcher_job: Object
    network_policies: tuple[Object, ...] = ()
    pod_group: Object | None = None

    def __iter__(self) -> Iterator[Object]:
        """In the order in which to create them: names first, the launcher last."""
        yield from (*self.guards, self.service, self.config_map)
        yield from (*self.workers, self.launcher_job)

    @property
    def guards(self) -> tuple[Object, ...]:
        """What must be there before the first pod."""
        return (*self.network_policies, *(() if self.pod_group is None else (self.pod_group,)))


def children(layout: Layout, job: MPIJob, facts: Facts) -> Children:
    """All children but the Secret; InvalidJob where the job's template is in their way."""
    planned = pod_groups.of_mpijob(job, facts)
    shared = _frame(layout, job, facts, planned)
    wrong = conflicts.errors(layout, shared, _PLACES)
    if wrong:
        raise InvalidJob(wrong)
    return Children(
        service(shared),
        config_map(shared),
        workers(layout.workers, shared),
        launcher_job(layout.launcher, shared),
        network_policies.of_mpijob(job, facts.isolation),
        None if planned is None else planned.pod_group,
    )


def errors(layout: Layout, job: MPIJob) -> tuple[FieldError, ...]:
    """Why `children` would refuse the job; for admission, before anything is made."""
    return conflicts.errors(layout, _frame(layout, job, Facts()), _PLACES)


def secret(layout: Layout, job: MPIJob, parts: Mapping[Part, str]) -> Object:
    """The job's Secret with these keys."""
    return secrets.secret(_frame(layout, job, Facts()), parts)


def _frame(layout: Layout, job: MPIJob, facts: Facts, planned: PlannedGang | None = None) -> Frame:
    named = Names(
        config_map=names.config_map(job.name),
        config_volume=CONFIG_VOLUME,
        secret=names.secret(job.name),
        ssh_volume=SSH_VOLUME,
        labels={names.APP: job.name},
        marks=Marks() if planned is None else planned.marks,
    )
    return frame(layout, job, named, facts)
