"""Which pods a finished job gives back (AC-4), by `cleanPodPolicy`.

`None` keeps what there is to look at, `Running` removes what still holds resources, `All` removes
every pod. Whatever the policy, a launcher that still runs is stopped, since a job that ended (at
its deadline, say) must not go on computing; and a pod that never ran is removed (AC-16).
Unlike upstream, `All` includes the launcher, which is what its users expect of the word.
"""

from __future__ import annotations

from mpi_trainer.api.kinds import pod_status
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.decide.observed import Observed, ObservedPod

NONE = "None"
RUNNING = "Running"
ALL = "All"
POLICIES = (NONE, RUNNING, ALL)


def pods_to_remove(job: MPIJob, observed: Observed) -> tuple[str, ...]:
    policy = job.spec.run_policy.clean_pod_policy or NONE
    return tuple(p.name for p in observed.pods if not p.terminating and _goes(policy, p))


def _goes(policy: str, pod: ObservedPod) -> bool:
    if policy == ALL or pod.phase == pod_status.PENDING:
        return True
    return pod.phase == pod_status.RUNNING and (policy == RUNNING or pod.role == "launcher")
