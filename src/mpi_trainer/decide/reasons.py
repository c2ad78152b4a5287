"""Every reason that a condition or an event of ours can carry, and the event itself."""

from __future__ import annotations

from typing import Literal

import msgspec

from mpi_trainer.api.kinds.pod_status import INVALID_IMAGE_NAME

CREATED = "MPIJobCreated"
RUNNING = "MPIJobRunning"
SUSPENDED = "MPIJobSuspended"
RESUMED = "MPIJobResumed"
SUCCEEDED = "MPIJobSucceeded"
RESTARTING = "MPIJobRestarting"
RESTARTED = "MPIJobRestarted"
WAITING = "MPIJobWaiting"
NO_PROGRESS = "NoProgress"
PROGRESS = "ProgressResumed"
NO_EFFECT = "FieldsWithoutEffect"
RELEASED = "WorkersReleased"

LAUNCHER_FAILED = "LauncherPodFailed"
WORKER_FAILED = "WorkerPodFailed"
EVICTED = "MPIJobEvicted"
RANK_FAILED = "RankFailed"
RANKS_LOST = "RanksLost"
PLACEMENT_WRONG = "PlacementWrong"
PLACEMENT_SURPRISING = "PlacementSurprising"
UNPROVEN = "EvidenceMissing"
RETRIED_TRAINJOB = "PodFailed"
RESUMED_TRAINJOB = "Resumed"
WORLDS_OF_ONE = "WorldsOfOne"
BACKOFF_LIMIT = "BackoffLimitExceeded"
FAILURE_POLICY = "PodFailurePolicy"
DEADLINE = "DeadlineExceeded"
SCHEDULING_TIMEOUT = "SchedulingTimeout"
IMAGE_INVALID = INVALID_IMAGE_NAME
NO_PROGRAM = "ProgramNotFound"
BAD_ARGUMENTS = "BadArguments"
INVALID = "ValidationError"
NAME_TAKEN = "ErrResourceExists"
REFUSED = "MPIJobFailed"
REFUSED_TRAINJOB = "TrainJobResourcesCreationFailed"

# Why an agent has ended a job; see diagnose/agent_facts.py.
OF_AGENT = frozenset(
    {
        "WorkersMissing",
        "WorkerLost",
        "DaemonLost",
        "DaemonFailed",
        "RankDied",
        "RankStuck",
        "RankLeft",
        "StartStuck",
        "MpirunStuck",
        "Unreachable",
        "NoSsh",
    }
)

# Failures that would be the same at every try; see permanent_failures.py.
PERMANENT = (IMAGE_INVALID, NO_PROGRAM, BAD_ARGUMENTS, "NoSsh")

# Ends that no further attempt could mend: they are the job's own, not an attempt's.
FINAL = (
    *(DEADLINE, SCHEDULING_TIMEOUT, INVALID, NAME_TAKEN, REFUSED, BACKOFF_LIMIT, FAILURE_POLICY),
    *PERMANENT,
)


class DecidedEvent(msgspec.Struct, frozen=True):
    type: Literal["Normal", "Warning"]
    reason: str
    message: str
