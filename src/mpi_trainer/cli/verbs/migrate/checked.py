"""`odh migrate --check`: what a cluster says of the result, and which pods would differ.

The cluster is asked by dry runs: about each object, and about a pod of each role of both jobs, so
that the pods are compared as its admission would make them. Nothing is made. Admission of a
TrainJob wants its runtime to be there; where it is not, that one refusal is left out and said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mpi_trainer.cli import context
from mpi_trainer.kube.resources import MPIJOBS, PODS, TRAINING_RUNTIMES, TRAINJOBS
from mpi_trainer.migrate.report import Converted, Object
from mpi_trainer.plan.migrated_pods import (
    PodDifference,
    Pods,
    differences,
    pod_differences,
    pod_to_try,
    pods,
)
from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend

Place = tuple[str, str, str]
_RESOURCES = {one.kind: one for one in (MPIJOBS, TRAINJOBS, TRAINING_RUNTIMES)}
_NO_RUNTIME = "spec.runtimeref"
_LATER = ("quota exceeded: ", "error looking up service account ")
"""why a pod is refused that may fit another time"""


class Result(msgspec.Struct, frozen=True):
    """`asked`: whether a cluster was, and about all of it; `notes` are for somebody to read, and
    are no refusals."""

    differences: tuple[PodDifference, ...] = ()
    refusals: tuple[str, ...] = ()
    asked: bool = False
    notes: tuple[str, ...] = ()


Checked = Mapping[Place, Result]


def place(job: Converted) -> Place:
    """No two jobs that can be converted have the same: an MPIJob v1 and one of v2beta1 may have
    one name, since they become objects of different kinds."""
    return job.api_version, job.namespace, job.name


def checked(jobs: Sequence[Converted], namespace: str) -> Checked:
    if jobs and context.on_cluster():
        return context.run_async(_asked(jobs, namespace))
    return {place(job): Result(tuple(_rendered(job))) for job in jobs}


def _rendered(job: Converted) -> Sequence[PodDifference]:
    return pod_differences(job.through, job.objects) if job.through else ()


async def _asked(jobs: Sequence[Converted], namespace: str) -> dict[Place, Result]:
    cluster = context.cluster(single=True)
    return {place(job): await _result(cluster, job, namespace) for job in jobs}


async def _result(cluster: ClusterBackend, job: Converted, namespace: str) -> Result:
    where = job.namespace or namespace
    refusals: list[str] = []
    notes: list[str] = []
    for made in job.objects:
        _, said = await cluster.tried(_RESOURCES[made["kind"]], _placed(made, where))
        told = [text.removeprefix("* ") for text in said if not text.endswith(" is invalid:")]
        missing = [text for text in told if _wants_runtime(made, text)]
        refusals += [f"{made['kind']}: {text}" for text in told if text not in missing]
        if missing:
            notes.append("admission of the TrainJob wants its runtime: apply that, and check again")
    tried = await _Tried.of(cluster, job, where)
    found = tuple(tried.differences()) if tried.whole else tuple(_rendered(job))
    refused = (*refusals, *tried.refusals)
    return Result(found, refused, not notes and tried.whole, (*notes, *tried.notes))


def _wants_runtime(made: Object, refusal: str) -> bool:
    return made["kind"] == TRAINJOBS.kind and refusal.lower().startswith(_NO_RUNTIME)


class _Tried(msgspec.Struct, frozen=True):
    """Pods of the job before and after, by role, as the server made them: `whole` if all are."""

    name: str
    before: Mapping[str, Mapping[str, Any]]
    after: Mapping[str, Mapping[str, Any]]
    refusals: tuple[str, ...]
    notes: tuple[str, ...]
    whole: bool

    @classmethod
    async def of(cls, cluster: ClusterBackend, job: Converted, namespace: str) -> _Tried:
        old = pods((job.through,) if job.through else (), namespace)
        new = pods(job.objects, namespace)
        refused: list[str] = []
        notes: list[str] = []
        after = await _answers(cluster, new, namespace, refused)
        before = await _answers(cluster, old, namespace, notes)
        later = [text for text in refused if any(word in text for word in _LATER)]
        closed = [text for text in refused if "cannot create resource" in text]
        if closed:
            notes = ["its pods were not tried: you may not create pods there, only jobs"]
        else:
            notes = [f"of the MPIJob before: {text}" for text in notes if text not in refused]
        return cls(
            name=old.name if old else "",
            before=before,
            after=after,
            refusals=tuple(text for text in refused if text not in (*later, *closed)),
            notes=(*later, *notes),
            whole=not refused and not notes,
        )

    def differences(self) -> Iterator[PodDifference]:
        for role in self.after if self.before else ():
            yield from differences(
                self.name, role, self.before[role]["spec"], self.after[role]["spec"]
            )


async def _answers(
    cluster: ClusterBackend, wanted: Pods | None, namespace: str, refused: list[str]
) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for role, template in wanted.templates.items() if wanted else ():
        body = _placed(pod_to_try(template, wanted.name if wanted else ""), namespace)
        pod, said = await cluster.tried(PODS, body)
        refused += [f"pod of the {role}: {text}" for text in said]
        if pod is not None:
            found[role] = pod
    return found


def _placed(made: Object, namespace: str) -> Object:
    return {**made, "metadata": {**made["metadata"], "namespace": namespace}}
