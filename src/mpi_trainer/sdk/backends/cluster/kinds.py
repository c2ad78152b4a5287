"""The kinds of training jobs that a cluster may serve, and each as a `JobView` (AC-17). Pure.

A kind is data: how its state is read, where its `suspend` is, and how its pods are found and told
apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds import trainjob
from mpi_trainer.api.kinds.labels import LABEL_JOB, LABEL_JOBSET, LABEL_OPERATOR
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.mpijob import LAUNCHER, MPIJob, MPIJobStatus
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml import typed
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.decide.trainjob import status_annotations
from mpi_trainer.kube.resources import MPIJOBS, TRAINJOBS, Resource
from mpi_trainer.sdk.backends.backend import JobCounts, JobTimes, JobView, Key, ReplicaCount
from mpi_trainer.sdk.backends.job_facts import count_of, object_in
from mpi_trainer.sdk.backends.views import mpijob_view, replica_count

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
    read: Callable[[Object], JobView]
    headless: Callable[[Object], bool]
    """whether no pod speaks for the others, so that the job's lines are those of all"""
    operator: str = ""
    """a further selector: pods of other kinds have the same label, and jobs may share a name"""

    def view(self, stored: Object) -> JobView:
        """Of an object of this kind, as the server has it; items of a list do not say their kind.

        Who wrote which field when is the server's own book-keeping and left out.
        """
        meta = {k: v for k, v in (stored.get("metadata") or {}).items() if k != "managedFields"}
        typed = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
        return self.read({**typed, **stored, "metadata": meta})

    def selector(self, key: Key) -> str:
        return f"{self.label}={key.name}{self.operator}"

    def suspended(self, wanted: bool) -> dict[str, Any]:
        """A merge patch."""
        change: Any = wanted
        for field in reversed(self.suspend):
            change = {field: change}
        return dict(change)


def _mpijob(data: Object) -> JobView:
    return mpijob_view(decode(MPIJob, data).value, data)


def _trainjob(data: Object) -> JobView:
    job = _sound(data)
    notes, to_time = status_annotations.read(job.metadata.annotations), status_annotations.to_time
    found = tuple(_conditions(job, notes))
    return JobView(
        kind=TRAINJOBS.kind,
        key=Key(job.namespace, job.name),
        state=c.state(found),
        counts=JobCounts(
            launcher=_child_count(job, "launcher", 1),
            workers=_child_count(job, "node", job.trainer.num_nodes or 0),
            slots=1 if job.trainer.num_proc_per_node is None else job.trainer.num_proc_per_node,
        ),
        times=JobTimes(
            created=job.metadata.creation_timestamp,
            started=to_time(notes.start_time) or job.metadata.creation_timestamp,
            completed=to_time(notes.completion_time) or _ended(job),
            deleted=job.metadata.deletion_timestamp,
        ),
        manifest=data,
        conditions=found,
        suspend=bool(job.spec.suspend),
    )


def _sound(data: Object) -> TrainJob:
    """The quick way for what is sound, as lists hold thousands; the lenient one for any other."""
    try:
        return typed.convert(data, TrainJob)
    except msgspec.ValidationError:
        return decode(TrainJob, data).value


def _child_count(job: TrainJob, name: str, wanted: int) -> ReplicaCount:
    found = next((one for one in job.status.jobs_status if one.name == name), None)
    if found is None:
        return ReplicaCount(wanted)
    return ReplicaCount(wanted, found.active, found.succeeded, found.failed)


def _conditions(job: TrainJob, notes: status_annotations.StatusAnnotations) -> list[c.Condition]:
    cause = notes.cause[: bounds.LOG_LINE]
    made = [
        c.Condition(
            type=_WORDS[one.type],
            status=one.status,
            reason=one.reason,
            message=cause if cause and one.type == trainjob.FAILED else one.message,
            last_transition_time=one.last_transition_time,
        )
        for one in job.status.conditions
        if one.type in _WORDS
    ]
    at_work = any(one.active or one.ready for one in job.status.jobs_status)
    if notes.phase == status_annotations.RUNNING or (not notes.phase and at_work):
        made.append(c.Condition(type=c.RUNNING, status=c.TRUE))
    return made


def _ended(job: TrainJob) -> datetime | None:
    ends = (trainjob.COMPLETE, trainjob.FAILED)
    held = (o for o in job.status.conditions if o.type in ends and o.status == c.TRUE)
    return next((one.last_transition_time for one in held), None)


def _older_kind(data: Object) -> JobView:
    """Kubeflow's older kinds have MPIJob's status, and their replicas by names of their own. Its
    workers are all of them: a master computes as they do."""
    policy = object_in(data, "spec", "runPolicy")
    meta = decode(ObjectMeta, data.get("metadata") or {}).value
    status = decode(MPIJobStatus, data.get("status") or {}).value
    wanted = {name: count_of(_replicas(data), name) or 1 for name in _replicas(data)}
    first = next((name for name in wanted if name.lower() in _FIRST), LAUNCHER)
    counts = [replica_count(status, name, number) for name, number in wanted.items()]
    return JobView(
        kind=str(data["kind"]),
        key=Key(meta.namespace, meta.name),
        state=c.state(status.conditions),
        counts=JobCounts(
            launcher=replica_count(status, first, wanted.get(first, 0)),
            workers=ReplicaCount(
                sum(one.wanted for one in counts),
                sum(one.active for one in counts),
                sum(one.succeeded for one in counts),
                sum(one.failed for one in counts),
            ),
        ),
        times=JobTimes(
            created=meta.creation_timestamp,
            started=status.start_time,
            completed=status.completion_time,
            deleted=meta.deletion_timestamp,
        ),
        manifest=data,
        conditions=status.conditions,
        suspend=bool(policy.get("suspend")),
    )


def _replicas(data: Object) -> Mapping[str, Any]:
    spec = object_in(data, "spec")
    return next((object_in(spec, name) for name in spec if name.endswith("ReplicaSpecs")), {})


def _headless_train(data: Object) -> bool:
    counted = (data.get("status") or {}).get("jobsStatus") or ()
    return bool(counted) and all(one.get("name") != "launcher" for one in counted)


def _headless_older(data: Object) -> bool:
    return not {name.lower() for name in _replicas(data)} & _FIRST


def _older(kind: str) -> Kind:
    return Kind(
        Resource("kubeflow.org", "v1", f"{kind.lower()}s", kind),
        LABEL_JOB,
        ("spec", "runPolicy", "suspend"),
        _older_kind,
        _headless_older,
        f",{LABEL_OPERATOR}={_controller(kind)}",
    )


def _controller(kind: str) -> str:
    """What the training operator calls itself on the pods of that kind."""
    return f"{kind.lower()}-controller"


_OLDER: Final = ("PyTorchJob", "TFJob")
MPIJOB: Final = Kind(
    MPIJOBS,
    LABEL_JOB,
    ("spec", "runPolicy", "suspend"),
    _mpijob,
    lambda data: False,
    "".join(f",{LABEL_OPERATOR}!={_controller(kind)}" for kind in _OLDER),
)
TRAINJOB: Final = Kind(TRAINJOBS, LABEL_JOBSET, ("spec", "suspend"), _trainjob, _headless_train)
KINDS: Final = (MPIJOB, TRAINJOB, *(_older(kind) for kind in _OLDER))
