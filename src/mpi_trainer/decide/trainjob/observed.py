"""What is known of a TrainJob at one moment, and what to do next about it: plain values.

The order of carrying out is fixed: store findings, store status, then remove, change or make the
JobSet. Between any two of these a crash is harmless. Making stands for all children, and a second
making finds the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from mpi_trainer.api.kinds.trainjob import Condition, JobStatus, TrainJobStatus
from mpi_trainer.decide.mpijob.decision import DecidedEvent
from mpi_trainer.decide.observed import Observed
from mpi_trainer.decide.trainjob.status_annotations import Findings


class ObservedJobSet(msgspec.Struct, frozen=True):
    """`rendered` is the mark of what it was made from, `runtime` of the snapshot of its job's
    runtime; both are empty where another controller made it. `since`: from when on it was seen to
    be as it is."""

    uid: str
    suspended: bool = False
    terminating: bool = False
    rendered: str = ""
    runtime: str = ""
    jobs: tuple[JobStatus, ...] = ()
    completed: Condition | None = None
    failed: Condition | None = None
    since: datetime | None = None

    @property
    def ended(self) -> datetime | None:
        found = self.completed or self.failed
        return found.last_transition_time if found is not None else None

    @property
    def active(self) -> bool:
        return any(job.active for job in self.jobs)


class ObservedTrainJob(msgspec.Struct, frozen=True):
    """`pods` are by host name: those that have ended or, where the API server was `asked` for them
    just now, all. `wanted` is the mark of what would be rendered now. `wishes` are the annotations
    of the runtime, `patience` the administrator's seconds until a job's pods run, 0 without end."""

    job_set: ObservedJobSet | None = None
    pods: Observed = Observed()
    asked: bool = False
    placement: str = ""
    wanted: str = ""
    wishes: Mapping[str, str] = {}
    trouble: str = ""
    patience: int = 0


class TrainJobDecision(msgspec.Struct, frozen=True):
    """`renew` is of a suspended JobSet that is not what it should be: to be changed, or replaced
    where it may not be."""

    status: TrainJobStatus
    findings: Findings
    make: bool = False
    suspend: bool | None = None
    renew: bool = False
    remove: bool = False
    delete_job: bool = False
    events: tuple[DecidedEvent, ...] = ()
    look_again: timedelta | None = None

    @property
    def acts(self) -> bool:
        return bool(
            self.make or self.renew or self.remove or self.delete_job or self.suspend is not None
        )
