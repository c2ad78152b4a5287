"""What jobs and Kueue say to each other, in Kueue's words."""

from __future__ import annotations

QUEUE = "kueue.x-k8s.io/queue-name"
"""label of a job that a queue holds: suspending it and letting it go are Kueue's"""
JOB_UID = "kueue.x-k8s.io/job-uid"
"""label of a Workload: whose it is"""
MANAGER = "kueue.x-k8s.io/manager"
"""the entry of a TrainJob's runtimePatches that is Kueue's"""
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
"""in managedBy: another cluster runs the job"""
