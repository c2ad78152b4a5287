"""Every reason that a condition or an event of ours can carry, in one place."""

from __future__ import annotations

CREATED = "MPIJobCreated"
RUNNING = "MPIJobRunning"
SUSPENDED = "MPIJobSuspended"
RESUMED = "MPIJobResumed"
SUCCEEDED = "MPIJobSucceeded"
RESTARTING = "MPIJobRestarting"
RESTARTED = "MPIJobRestarted"
WAITING = "MPIJobWaiting"

LAUNCHER_FAILED = "LauncherPodFailed"
WORKER_FAILED = "WorkerPodFailed"
EVICTED = "MPIJobEvicted"
RANK_FAILED = "RankFailed"
RANKS_LOST = "RanksLost"
PLACEMENT_WRONG = "PlacementWrong"
BACKOFF_LIMIT = "BackoffLimitExceeded"
DEADLINE = "DeadlineExceeded"
SCHEDULING_TIMEOUT = "SchedulingTimeout"
INVALID = "ValidationError"
NAME_TAKEN = "ErrResourceExists"
REFUSED = "MPIJobFailed"

# Ends that no further attempt could mend: they are the job's own, not an attempt's.
FINAL = (DEADLINE, SCHEDULING_TIMEOUT, INVALID, NAME_TAKEN, REFUSED)
