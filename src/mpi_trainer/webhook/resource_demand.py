"""What a job of either kind asks of its namespace, and where in the job that is written. Pure.

A job that is suspended or queued asks for nothing yet: somebody else decides when its pods come.
`Questions` is what the API server is to be asked about a job at all.
"""

from __future__ import annotations

import msgspec

from mpi_trainer.api.effective import combine
from mpi_trainer.api.effective.combine import Effective
from mpi_trainer.api.errors import Path
from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, MPIJob
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation import compatibility
from mpi_trainer.webhook.borrowed_rights import Claim
from mpi_trainer.webhook.demand import Demand, demand

RUNTIME: Path = (*compatibility.REF, "name")

Stage = tuple[Demand, ...]
"""what is asked at one time"""


class Questions(msgspec.Struct, frozen=True):
    """`claims` are asked of the user. `room`: whether a quota is ever large enough; `left`: whether
    it is now; `pods`: whether the cluster would take the pods."""

    claims: tuple[Claim, ...] = ()
    room: bool = False
    left: bool = False
    pods: bool = False


class Asking(msgspec.Struct, frozen=True):
    """What is asked, one stage after another.

    `noun`: what the user calls the pods of which there are many, and `many` where their number
    stands; `rest` is the place of all others. One of that number is `each` pods, and `among` others
    are counted in it too.
    """

    stages: tuple[Stage, ...]
    noun: str
    many: Path
    rest: Path
    each: int = 1
    among: int = 0

    def counted(self, number: int) -> str:
        return f"{number} {self.noun}{'' if number == 1 else 's'}"


def of_mpijob(job: MPIJob) -> Asking:
    roles = ((LAUNCHER, 1, job.launcher), (WORKER, job.workers, job.worker))
    waits = job.spec.run_policy.suspend or LABEL_QUEUE in job.metadata.labels
    asked = tuple(
        demand(role.lower(), pods, replica.template.view.spec, many=role == WORKER)
        for role, pods, replica in roles
        if pods
    )
    replicas = ("spec", "mpiReplicaSpecs")
    many, rest = (*replicas, WORKER, "replicas"), (*replicas, LAUNCHER)
    return Asking(() if waits else (asked,), "worker", many, rest)


def of_trainjob(job: TrainJob, whole: Effective) -> Asking:
    """A job that others wait for the completion of stands alone: what runs beside it is not known,
    and too little is asked for rather than too much."""
    node = whole.job(combine.NODE) or whole.job(combine.TRAINER)
    before = {name for one in whole.jobs for name in one.after}
    asked = {
        one.name: demand(
            one.name, one.count * one.replicas, one.template.view.spec, many=one is node
        )
        for one in whole.jobs
        if one.count * one.replicas
    }
    first = tuple((one,) for name, one in asked.items() if name in before)
    last = tuple(one for name, one in asked.items() if name not in before)
    waits = job.spec.suspend or LABEL_QUEUE in job.metadata.labels
    return Asking(
        () if waits else (*first, last),
        "node",
        ("spec", "trainer", "numNodes"),
        RUNTIME,
        each=1 if node is None else node.replicas,
        among=int(whole.run_launcher_as_node),
    )
