"""What is known of a TrainJob at one moment: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from mpi_trainer.api.kinds.trainjob import ReplicatedJobStatus, TrainJobCondition
from mpi_trainer.decide.observed import Observed


class ObservedJobSet(msgspec.Struct, frozen=True):
    """`rendered` is the mark of what it was made from, `runtime` of the snapshot of its job's
    runtime; both are empty where another controller made it. `since`: from when on it was seen to
    be as it is."""

    uid: str
    suspended: bool = False
    terminating: bool = False
    rendered: str = ""
    runtime: str = ""
    jobs: tuple[ReplicatedJobStatus, ...] = ()
    completed: TrainJobCondition | None = None
    failed: TrainJobCondition | None = None
    since: datetime | None = None

    @property
    def ended(self) -> datetime | None:
        found = self.completed or self.failed
        return found.last_transition_time if found is not None else None

    @property
    def active(self) -> bool:
        return any(job.active for job in self.jobs)


class ObservedTrainJob(msgspec.Struct, frozen=True):
    """`pods` are by host name: those that have ended or, with `all_pods`, all that the API server
    has now. `rendered` is the mark of what would be rendered now. `problem` is why the last try to
    make the children failed. `schedule_timeout` is the administrator's default for the seconds
    until a job's pods run, 0 for no limit."""

    job_set: ObservedJobSet | None = None
    pods: Observed = Observed()
    all_pods: bool = False
    placement: str = ""
    rendered: str = ""
    runtime_annotations: Mapping[str, str] = {}
    problem: str = ""
    schedule_timeout: int = 0
