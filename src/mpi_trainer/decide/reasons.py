"""Every reason that a condition or an event of ours can carry, in one place."""

from __future__ import annotations

CREATED = "MPIJobCreated"
RUNNING = "MPIJobRunning"
SUSPENDED = "MPIJobSuspended"
RESUMED = "MPIJobResumed"
SUCCEEDED = "MPIJobSucceeded"
RESTARTING = "MPIJobRestarting"
RESTARTED = "MPIJobRestarted"

LAUNCHER_FAILED = "LauncherPodFailed"
WORKER_FAILED = "WorkerPodFailed"
EVICTED = "MPIJobEvicted"
RANK_FAILED = "RankFailed"
RANKS_LOST = "RanksLost"
PLACEMENT_WRONG = "PlacementWrong"
BACKOFF_LIMIT = "BackoffLimitExceeded"
DEADLINE = "DeadlineExceeded"
SCHEDULING_TIMEOUT = "SchedulingTimeout"

# Ends that no further attempt could mend: the job's own time is over, not an attempt.
OF_TIME = (DEADLINE, SCHEDULING_TIMEOUT)
