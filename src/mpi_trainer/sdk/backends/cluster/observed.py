"""What the API server has, as the values of the Backend protocol. Pure.

Objects are read as far as they can be: a job that another controller or a person wrote strangely
is shown with what is understood of it, and hides no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds import pod_status
from mpi_trainer.api.kinds.annotations import ATTEMPT, whole_number
from mpi_trainer.api.kinds.conditions import Conditions
from mpi_trainer.api.kinds.labels import (
    LABEL_COMPLETION_INDEX,
    LABEL_INDEX,
    LABEL_JOB,
    LABEL_REPLICA_TYPE,
    LABEL_REPLICATED_JOB,
    LABEL_ROLE,
)
from mpi_trainer.api.kinds.meta import ApiValue
from mpi_trainer.api.kinds.mpijob import OPEN_MPI, WORKER, MPIJobStatus
from mpi_trainer.api.kinds.pod_status import DetailedContainerStatus, Terminated
from mpi_trainer.api.kinds.trainjob import TrainerStatus
from mpi_trainer.api.validation.resources import GPUS
from mpi_trainer.api.yaml import typed
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.decide import agent_summary, reasons
from mpi_trainer.decide.observed import UNRECORDED, End
from mpi_trainer.diagnose import agent_facts, evidence
from mpi_trainer.diagnose.progress import Progress
from mpi_trainer.layout.agent.summary import Summary
from mpi_trainer.sdk.backends import job_facts, views
from mpi_trainer.sdk.backends.backend import (
    EventInfo,
    JobSummary,
    JobView,
    Key,
    PodInfo,
    RankInfo,
)
from mpi_trainer.sdk.backends.views import LONG_AGO

_ROLES = (LABEL_REPLICA_TYPE, LABEL_ROLE, LABEL_REPLICATED_JOB)
_FIRST = frozenset({"launcher", "master", "chief"})
_GPUS = tuple(name.encode() for name in GPUS)


class Meta(evidence.Meta, frozen=True):
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: Mapping[str, str] = {}
    creation_timestamp: datetime = LONG_AGO


class _Replicas(ApiValue, frozen=True):
    """`template` is read only where it names a GPU: of thousands of jobs that takes seconds."""

    replicas: int | None = None
    template: msgspec.Raw = msgspec.Raw(b"{}")

    @property
    def gpus(self) -> int:
        text = bytes(self.template)
        for name in _GPUS:
            if name in text:
                pods = 1 if self.replicas is None else max(self.replicas, 0)
                return pods * job_facts.template_gpus(_object(text))
        return 0


class _RunPolicy(ApiValue, frozen=True):
    suspend: bool | None = None


class _Spec(ApiValue, frozen=True):
    slots_per_worker: int | None = None
    run_policy: _RunPolicy | None = None
    mpi_implementation: str | None = None
    mpi_replica_specs: Mapping[str, _Replicas] | None = None


class Listed(ApiValue, frozen=True):
    """An MPIJob as far as a list shows it."""

    metadata: Meta = Meta()
    spec: _Spec = _Spec()
    status: MPIJobStatus = MPIJobStatus()


class Pod(evidence.Pod, frozen=True):
    metadata: Meta = Meta()

    @property
    def role(self) -> Literal["launcher", "worker"]:
        """By the first of the labels of whichever kind the job is of; a master speaks for its
        workers too. The training operator gives a first worker the role of a master."""
        labels = self.metadata.labels
        said = next((labels[name] for name in _ROLES if name in labels), "")
        return "launcher" if said.lower() in _FIRST else "worker"

    @property
    def numbered(self) -> bool:
        """Whether its index is that of a worker, and not of a parameter server or an evaluator."""
        return self.metadata.labels.get(LABEL_REPLICA_TYPE, "worker").lower() == "worker"

    @property
    def index(self) -> int:
        labels = self.metadata.labels
        found = labels.get(LABEL_INDEX) or labels.get(LABEL_COMPLETION_INDEX, "")
        return whole_number(found, 0)

    @property
    def attempt(self) -> int:
        return whole_number(self.metadata.annotations.get(ATTEMPT, ""), 1)

    @property
    def container(self) -> str:
        """The one that runs the job; others are its user's own business."""
        return self.spec.containers[0].name if self.spec.containers else ""

    @property
    def main(self) -> DetailedContainerStatus:
        own = (s for s in self.status.container_statuses if s.name == self.container)
        return next(own, DetailedContainerStatus())

    @property
    def over(self) -> bool:
        return self.status.phase in pod_status.ENDED


class _Series(ApiValue, frozen=True):
    last_observed_time: datetime | None = None


class ClusterEvent(ApiValue, frozen=True):
    """Of both event APIs: the older has first and last timestamps, the newer an event time."""

    metadata: Meta = Meta()
    type: str = ""
    reason: str = ""
    message: str = ""
    event_time: datetime | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    series: _Series | None = None

    @property
    def time(self) -> datetime:
        times = (self.last_timestamp, self.event_time, self.first_timestamp)
        return next((t for t in times if t is not None), self.metadata.creation_timestamp)


def selector(key: Key) -> str:
    """Which pods are the job's."""
    return f"{LABEL_JOB}={key.name}"


def summary(found: Listed) -> JobSummary:
    status, spec, meta = found.status, found.spec, found.metadata
    state = c.state(status.conditions)
    current = c.find(status.conditions, state)
    replicas = spec.mpi_replica_specs or {}
    worker = replicas.get(WORKER, _Replicas(replicas=0))
    waiting = waits_for(status.conditions)
    return JobSummary(
        key=Key(meta.namespace, meta.name),
        state=state,
        created=meta.creation_timestamp,
        reason=current.reason if current else "",
        message=waiting or (current.message if current else ""),
        started=status.start_time,
        completed=status.completion_time,
        workers=worker.replicas or 0,
        slots=1 if spec.slots_per_worker is None else spec.slots_per_worker,
        implementation=spec.mpi_implementation or OPEN_MPI,
        uid=meta.uid,
        resource_version=meta.resource_version,
        gpus=sum(one.gpus for one in replicas.values()),
        queue=job_facts.queue(meta.labels),
        owner=job_facts.owner(meta.annotations),
        suspend=bool(spec.run_policy and spec.run_policy.suspend),
        waits_for=waiting,
    )


def _object(text: bytes) -> dict[str, Any]:
    try:
        return typed.decode(text, dict[str, Any])
    except msgspec.MsgspecError:
        return {}


def view_summary(job: JobView) -> JobSummary:
    return views.summary(job, reported_progress(job.manifest), waits_for(job.conditions))


def reported_progress(manifest: Mapping[str, Any]) -> Progress | None:
    """What a TrainJob's status says of its progress, where its program or controller reports it."""
    status = manifest.get("status") or {}
    if not status.get("trainerStatus"):
        return None
    said = decode(TrainerStatus, status["trainerStatus"]).value
    if said.progress_percentage is None:
        return None
    left = said.estimated_remaining_seconds
    return Progress(
        step=said.progress_percentage,
        total=100,
        unit="%",
        eta_seconds=None if left is None else float(left),
        at=said.last_updated_time.timestamp() if said.last_updated_time else 0.0,
    )


def waits_for(conditions: Conditions) -> str:
    """What the controller says a job waits for; empty where it runs or has ended."""
    running = c.find(conditions, c.RUNNING)
    if running is None or running.reason != reasons.WAITING or c.finished(conditions):
        return ""
    return running.message


def pod_info(found: Pod) -> PodInfo:
    terminated = found.main.state.terminated
    end = _end(terminated) if terminated else End()
    gone = found.status.reason if found.over else ""
    return PodInfo(
        name=found.name,
        role=found.role,
        index=found.index,
        phase=found.status.phase,
        ready=found.main.ready,
        address=found.status.pod_ip,
        node=found.spec.node_name,
        end=end.text() if terminated else gone,
        exit_code=end.code,
        signal=end.signal,
        reason=gone or end.reason,
    )


def _end(ended: Terminated) -> End:
    reason = "" if ended.reason in pod_status.EXITED else ended.reason
    if ended.signal:
        return End(signal=ended.signal, reason=reason)
    return End(code=ended.exit_code, reason=reason)


def rank_infos(pods: Iterable[Pod]) -> tuple[RankInfo, ...]:
    """Where ranks ran and how they ended, as the last launcher that has ended says it."""
    launchers = sorted((p for p in pods if p.role == "launcher"), key=lambda p: p.attempt)
    ended = launchers[-1].main.state.terminated if launchers else None
    said = agent_facts.read(ended.message) if ended else Summary()
    attempt = launchers[-1].attempt if launchers else 0
    return tuple(
        views.rank_info(one, unseen=UNRECORDED)
        for one in agent_summary.observed_ranks(said, attempt)
    )


def event_infos(found: Iterable[ClusterEvent]) -> tuple[EventInfo, ...]:
    """In the order of their making, which the times alone, in whole seconds, do not tell."""
    ordered = sorted(found, key=lambda e: (e.time, _number(e.metadata.resource_version)))
    return tuple(EventInfo(e.time, e.type, e.reason, e.message) for e in ordered)


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0
