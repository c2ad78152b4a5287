"""A pod's status as Kubernetes writes it, as far as anything here reads it.

`PodStatus` is what the controller keeps, of pods by the ten thousand: a field that it does not read
belongs in `DetailedPodStatus`, which is read for one job at a time and not kept.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

import msgspec

from mpi_trainer.api.kinds.meta import ApiValue

Phase = Literal["Pending", "Running", "Succeeded", "Failed"]
PENDING: Final = "Pending"
RUNNING: Final = "Running"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
ENDED: Final = (SUCCEEDED, FAILED)

POD_SCHEDULED: Final = "PodScheduled"
READY: Final = "Ready"
DISRUPTION_TARGET: Final = "DisruptionTarget"

INVALID_IMAGE_NAME: Final = "InvalidImageName"
IMAGE_NEVER_PULLED: Final = "ErrImageNeverPull"
NO_IMAGE: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", INVALID_IMAGE_NAME, IMAGE_NEVER_PULLED}
)
CRASHES_AGAIN: Final = "CrashLoopBackOff"
INITIALIZING: Final = "PodInitializing"
STARTING: Final = frozenset({"", INITIALIZING, "ContainerCreating"})
"""reasons for which the container of a pod that merely starts waits"""

OOM_KILLED: Final = "OOMKilled"
EVICTED: Final = "Evicted"
NOT_STARTED: Final = frozenset({"StartError", "ContainerCannotRun"})
"""reasons of a container whose program the runtime could not start"""
EXITED: Final = frozenset({"Error", "Completed"})
"""reasons that say no more than the exit code does"""
DISRUPTIONS: Final = frozenset({EVICTED, "Preempting", "NodeLost", "NodeShutdown", "Shutdown"})
"""reasons of a pod that the cluster has taken away"""


class Waiting(ApiValue, frozen=True, gc=False):
    reason: str = ""
    message: str = ""


class Running(ApiValue, frozen=True, gc=False):
    started_at: datetime | None = None


class Terminated(ApiValue, frozen=True, gc=False):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(ApiValue, frozen=True, gc=False):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(ApiValue, frozen=True, gc=False):
    name: str = ""
    ready: bool = False
    state: ContainerState = ContainerState()


class Condition(ApiValue, frozen=True, gc=False):
    """Of a pod, a Job, a Workload."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class PodStatus(ApiValue, frozen=True, gc=False):
    phase: str = PENDING
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class DetailedContainerStatus(ContainerStatus, frozen=True, gc=False):
    image: str = ""
    restart_count: int = 0
    last_state: ContainerState = ContainerState()


class DetailedPodStatus(PodStatus, frozen=True, gc=False):
    pod_ip: str = msgspec.field(default="", name="podIP")
    container_statuses: tuple[DetailedContainerStatus, ...] = ()
    init_container_statuses: tuple[DetailedContainerStatus, ...] = ()


def condition(found: tuple[Condition, ...], kind: str, status: str) -> Condition | None:
    return next((c for c in found if c.type == kind and c.status == status), None)
