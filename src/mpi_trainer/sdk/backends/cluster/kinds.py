"""The kinds of training jobs, and each as the MPIJob that stands in for it (AC-17). Pure.

A job of any kind is shown in the same six words, with the same counts; its own API is what is
written to. A kind here is data: where its state and its `suspend` are, and how its pods are found
and told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds import trainjob
from mpi_trainer.api.kinds.labels import LABEL_JOB, LABEL_JOBSET
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.mpijob import (
    LAUNCHER,
    WORKER,
    MPIJob,
    MPIJobSpec,
    MPIJobStatus,
    ReplicaSpec,
    ReplicaStatus,
    RunPolicy,
)
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.decide.trainjob import status_annotations
from mpi_trainer.kube.resources import MPIJOBS, TRAINJOBS, Resource
from mpi_trainer.sdk.backends.backend import Key

Object = Mapping[str, Any]
_WORDS: Final = {
    trainjob.COMPLETE: c.SUCCEEDED,
    trainjob.FAILED: c.FAILED,
    trainjob.SUSPENDED: c.SUSPENDED,
}
_FIRST: Final = frozenset({"launcher", "master", "chief"})


class Kind(msgspec.Struct, frozen=True):
    """`label` is the pods' that says whose they are; `suspend` is the path of that field."""

    resource: Resource
    label: str
    suspend: tuple[str, ...]
    job: Callable[[Object], MPIJob]
    headless: Callable[[Object], bool]
    """whether no pod speaks for the others, so that the job's lines are those of all"""

    def selector(self, key: Key) -> str:
        return f"{self.label}={key.name}"

    def suspended(self, wanted: bool) -> dict[str, Any]:
        """A merge patch."""
        change: Any = wanted
        for field in reversed(self.suspend):
            change = {field: change}
        return dict(change)


def _mpijob(data: Object) -> MPIJob:
    return decode(MPIJob, data).value


def _trainjob(data: Object) -> MPIJob:
    job = decode(TrainJob, data).value
    told = status_annotations.read(job.metadata.annotations)
    counts = {one.name: one for one in job.status.jobs_status}
    nodes = job.trainer.num_nodes or 0
    return MPIJob(
        api_version=TRAINJOBS.api_version,
        kind=TRAINJOBS.kind,
        metadata=job.metadata,
        spec=MPIJobSpec(
            slots_per_worker=job.trainer.num_proc_per_node,
            run_policy=RunPolicy(suspend=job.spec.suspend),
            mpi_replica_specs={LAUNCHER: ReplicaSpec(), WORKER: ReplicaSpec(replicas=nodes)},
        ),
        status=MPIJobStatus(
            conditions=tuple(_conditions(job, told)),
            start_time=_time(told.start_time) or job.metadata.creation_timestamp,
            completion_time=_time(told.completion_time) or _ended(job),
            replica_statuses={
                role: ReplicaStatus(active=n.active, succeeded=n.succeeded, failed=n.failed)
                for role, name in ((LAUNCHER, "launcher"), (WORKER, "node"))
                if (n := counts.get(name)) is not None
            },
        ),
    )


def _conditions(job: TrainJob, told: status_annotations.StatusAnnotations) -> list[c.Condition]:
    made = [
        c.Condition(
            type=_WORDS[one.type],
            status=one.status,
            reason=one.reason,
            message=told.cause if told.cause and one.type == trainjob.FAILED else one.message,
            last_transition_time=one.last_transition_time,
        )
        for one in job.status.conditions
        if one.type in _WORDS
    ]
    at_work = any(one.active or one.ready for one in job.status.jobs_status)
    if told.phase == status_annotations.RUNNING or (not told.phase and at_work):
        made.append(c.Condition(type=c.RUNNING, status=c.TRUE))
    return made


def _ended(job: TrainJob) -> datetime | None:
    ends = (trainjob.COMPLETE, trainjob.FAILED)
    held = (o for o in job.status.conditions if o.type in ends and o.status == c.TRUE)
    return next((one.last_transition_time for one in held), None)


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def _legacy(data: Object) -> MPIJob:
    """Kubeflow's older kinds have MPIJob's status, and their replicas by names of their own."""
    replicas = _replicas(data)
    policy = (data.get("spec") or {}).get("runPolicy") or {}
    workers = sum(int((one or {}).get("replicas") or 1) for one in replicas.values())
    return MPIJob(
        api_version=str(data.get("apiVersion", "")),
        kind=str(data.get("kind", "")),
        metadata=decode(ObjectMeta, data.get("metadata") or {}).value,
        spec=MPIJobSpec(
            run_policy=RunPolicy(suspend=policy.get("suspend")),
            mpi_replica_specs={LAUNCHER: ReplicaSpec(), WORKER: ReplicaSpec(replicas=workers)},
        ),
        status=decode(MPIJobStatus, data.get("status") or {}).value,
    )


def _replicas(data: Object) -> Mapping[str, Any]:
    spec = data.get("spec") or {}
    found = next((v for k, v in spec.items() if k.endswith("ReplicaSpecs")), None)
    return found if isinstance(found, dict) else {}


def _headless_train(data: Object) -> bool:
    counted = (data.get("status") or {}).get("jobsStatus") or ()
    return bool(counted) and all(one.get("name") != "launcher" for one in counted)


def _headless_legacy(data: Object) -> bool:
    return not {name.lower() for name in _replicas(data)} & _FIRST


def _older(kind: str) -> Kind:
    return Kind(
        Resource("kubeflow.org", "v1", f"{kind.lower()}s", kind),
        LABEL_JOB,
        ("spec", "runPolicy", "suspend"),
        _legacy,
        _headless_legacy,
    )


MPIJOB: Final = Kind(
    MPIJOBS, LABEL_JOB, ("spec", "runPolicy", "suspend"), _mpijob, lambda data: False
)
TRAINJOB: Final = Kind(TRAINJOBS, LABEL_JOBSET, ("spec", "suspend"), _trainjob, _headless_train)
KINDS: Final = (MPIJOB, TRAINJOB, _older("PyTorchJob"), _older("TFJob"))
