"""What a job's pods ask of their namespace, counted as ResourceQuota counts it. Pure.

What one pod asks for is in `api.pod_amounts`. A job that is suspended or queued asks for nothing
yet: its pods come later.
"""

from __future__ import annotations

from decimal import Decimal

import msgspec

from mpi_trainer.api import pod_amounts
from mpi_trainer.api.effective import combine
from mpi_trainer.api.effective.combine import Effective
from mpi_trainer.api.errors import Path
from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, MPIJob
from mpi_trainer.api.kinds.pods import PodSpec
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.pod_amounts import Amounts
from mpi_trainer.api.validation import compatibility

RUNTIME: Path = (*compatibility.REF, "name")

_UNPREFIXED = ("cpu", "memory", "ephemeral-storage")


class RoleDemand(msgspec.Struct, frozen=True):
    """One role: how many pods, what each asks for, and what scopes look at.

    `many`: the role of which the user says how many there are.
    """

    role: str
    pods: int
    many: bool
    each: Amounts
    best_effort: bool
    priority_class: str

    def total(self, resource: str) -> Decimal:
        return self.each.get(resource, Decimal(0)) * self.pods


class JobDemand(msgspec.Struct, frozen=True):
    """What a job asks for at one time, stage after stage.

    `noun`: what the user calls the pods of which there are many, and `many` where their number is
    written; `rest` is the path of all others. One of that number is `each` pods, and `among` others
    are counted in it too.
    """

    stages: tuple[tuple[RoleDemand, ...], ...]
    noun: str
    many: Path
    rest: Path
    each: int = 1
    among: int = 0

    def counted(self, number: int) -> str:
        return f"{number} {self.noun}{'' if number == 1 else 's'}"


def mpijob_demand(job: MPIJob) -> JobDemand:
    roles = ((LAUNCHER, 1, job.launcher), (WORKER, job.workers, job.worker))
    waits = job.spec.run_policy.suspend or LABEL_QUEUE in job.metadata.labels
    asked = tuple(
        role_demand(role.lower(), pods, replica.template.view.spec, many=role == WORKER)
        for role, pods, replica in roles
        if pods
    )
    replicas = ("spec", "mpiReplicaSpecs")
    many, rest = (*replicas, WORKER, "replicas"), (*replicas, LAUNCHER)
    return JobDemand(() if waits else (asked,), "worker", many, rest)


def trainjob_demand(job: TrainJob, whole: Effective) -> JobDemand:
    """A replicated job whose completion others wait for is a stage alone: what runs beside it is
    not known, so that less is counted rather than more."""
    node = whole.job(combine.NODE) or whole.job(combine.TRAINER)
    awaited = {name for one in whole.jobs for name in one.after}
    asked = {
        one.name: role_demand(
            one.name, one.count * one.replicas, one.template.view.spec, many=one is node
        )
        for one in whole.jobs
        if one.count * one.replicas
    }
    first = tuple((one,) for name, one in asked.items() if name in awaited)
    last = tuple(one for name, one in asked.items() if name not in awaited)
    waits = job.spec.suspend or LABEL_QUEUE in job.metadata.labels
    return JobDemand(
        () if waits else (*first, last),
        "node",
        ("spec", "trainer", "numNodes"),
        RUNTIME,
        each=1 if node is None else node.replicas,
        among=int(whole.run_launcher_as_node),
    )


def role_demand(role: str, pods: int, spec: PodSpec, *, many: bool) -> RoleDemand:
    """Amounts are under every name that a quota may use for them."""
    requests, limits = pod_amounts.requests(spec), pod_amounts.limits(spec)
    each: dict[str, Decimal] = {"pods": Decimal(1), "count/pods": Decimal(1)}
    for resource, amount in requests.items():
        each[f"requests.{resource}"] = amount
        if resource in _UNPREFIXED:
            each[resource] = amount
    for resource, amount in limits.items():
        each[f"limits.{resource}"] = amount
    compute = {"cpu", "memory"}
    best_effort = not compute & (requests.keys() | limits.keys())
    return RoleDemand(role, pods, many, each, best_effort, spec.priority_class_name)
