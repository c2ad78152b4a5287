"""Values that Kubernetes writes into the status of pods, as far as anything here reads them."""

from __future__ import annotations

from typing import Final, Literal

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
