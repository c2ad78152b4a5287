"""What is known of a job's pods and ranks at one moment, whoever runs them.

The cluster's controller and the local executor both fill these values; nothing here says how.
`Record` is the only memory between two passes: it is stored with the job, and a decision that
changes it must be stored **before** it is acted upon, or a crash could start an attempt twice.
"""

from __future__ import annotations

import signal
from datetime import datetime
from typing import Literal

import msgspec

from mpi_trainer.api.kinds import pod_status
from mpi_trainer.diagnose import pod_waiting
from mpi_trainer.diagnose.pod_waiting import WaitingPod

Role = Literal["launcher", "worker"]


class End(msgspec.Struct, frozen=True):
    """How a process ended: by an exit code, or by a signal. `unstarted`: a launcher's, under whose
    agent no rank has begun."""

    code: int | None = None
    signal: int | None = None
    reason: str = ""
    message: str = ""
    unstarted: bool = False

    @property
    def well(self) -> bool:
        return self.code == 0

    def text(self) -> str:
        """`exit code 137 (OOMKilled)`, `signal 11 (SIGSEGV)`: short enough for a sentence."""
        if self.signal is not None:
            return f"signal {self.signal} ({self.reason or _signal_name(self.signal)})"
        how = "unknown end" if self.code is None else f"exit code {self.code}"
        return f"{how} ({self.reason})" if self.reason else how


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown signal"


class ObservedPod(msgspec.Struct, frozen=True):
    """One pod. `why` is what its scheduler, kubelet or evictor says of it, where it is not running,
    and `waiting` the kubelet's reason for a container that waits. `exists`: False of a launcher
    whose Job is there and whose pod is not.

    `disrupted` means that the cluster takes it away, not its job or a person. `preparing`: its init
    containers have begun, so it has a node and the first image. `workers` is how many
    workers a launcher was made for, `started` when its container began, where that is known, and
    `gone_by` when one that is being deleted was to be gone. `foreign`: another controller made it.
    """

    name: str
    role: Role
    uid: str
    phase: pod_status.Phase
    index: int = 0
    attempt: int = 1
    ready: bool = False
    scheduled: bool = True
    preparing: bool = False
    terminating: bool = False
    end: End | None = None
    why: str = ""
    waiting: str = ""
    exists: bool = True
    disrupted: bool = False
    workers: int | None = None
    started: datetime | None = None
    gone_by: datetime | None = None
    foreign: bool = False

    @property
    def ended(self) -> bool:
        return self.phase in pod_status.ENDED

    @property
    def begun(self) -> bool:
        """Whether it runs, or did: nothing of the cluster's is waited for any more."""
        return self.phase != pod_status.PENDING or self.preparing

    def wait_cause(self) -> str:
        """Why it does not run, as `pod_waiting` says it; empty where it does, or has ended."""
        if not self.exists and not self.terminating:
            return pod_waiting.absent(self.why)
        return pod_waiting.cause(
            WaitingPod(
                phase=self.phase,
                ready=self.ready,
                scheduled=self.scheduled,
                terminating=self.terminating,
                reason=self.waiting,
                message=self.why,
                preparing=self.preparing,
            )
        )


UNRECORDED = "killed or lost"
"""how a rank ended that left no record: killed with its wrapper, or lost with its host"""


class ObservedRank(msgspec.Struct, frozen=True):
    """One rank, as its wrapper reported it. `end` is None while it runs, or when it was lost.

    `foreign`: it used another MPI than the one that started it, so its world was itself alone.
    `ended` orders the ends of ranks of one machine; it means nothing else.
    """

    rank: int
    size: int
    pod: str
    attempt: int = 1
    pid: int = 0
    end: End | None = None
    ended: float | None = None
    foreign: bool = False


class Failure(msgspec.Struct, frozen=True):
    """Why an attempt ended."""

    attempt: int
    reason: str
    message: str
    pod: str = ""


class Record(msgspec.Struct, frozen=True):
    """The durable memory of a job: which attempt it is in, and why earlier ones ended.

    `retry_at` is set between two attempts; `attempt` then names the one that has yet to begin.
    """

    attempt: int = 1
    failures: tuple[Failure, ...] = ()
    retry_at: datetime | None = None


class Observed(msgspec.Struct, frozen=True):
    """`refused` is what the API server said when it last refused a pod that is missing. `suspicion`
    says where the ranks are of a job that seems to be stuck; empty where it does not.

    `every_pod_works`: the job is one without MPI, whose pods each do a part of the work, so that it
    has succeeded when all of them have.
    """

    pods: tuple[ObservedPod, ...] = ()
    ranks: tuple[ObservedRank, ...] = ()
    record: Record = Record()
    has_key: bool = False
    refused: str = ""
    every_pod_works: bool = False
    suspicion: str = ""

    @property
    def workers(self) -> tuple[ObservedPod, ...]:
        return tuple(p for p in self.pods if p.role == "worker")

    @property
    def launchers(self) -> tuple[ObservedPod, ...]:
        return tuple(p for p in self.pods if p.role == "launcher")

    def launcher(self) -> ObservedPod | None:
        """The launcher of the current attempt; one of an earlier attempt is only waste."""
        return next(
            (p for p in self.launchers if p.attempt == self.record.attempt and not p.terminating),
            None,
        )
