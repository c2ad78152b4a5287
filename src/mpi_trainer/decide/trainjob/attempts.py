"""Why a pod of a TrainJob has failed; trying again is JobSet's business, and that of its Jobs."""

from __future__ import annotations

from mpi_trainer.api.effective.combine import Effective
from mpi_trainer.api.kinds import pod_status
from mpi_trainer.api.kinds.runtime import MPI
from mpi_trainer.decide import cause_text, permanent_failures, reasons
from mpi_trainer.decide.observed import Failure, Observed


def failure_cause(effective: Effective, pods: Observed) -> str:
    """The launcher's own account where it has one, else the first pod that failed."""
    failed = [p for p in pods.pods if p.phase == pod_status.FAILED]
    launcher = next((p for p in failed if p.role == "launcher"), None)
    if launcher is not None and launcher.end is not None:
        if launcher.end.reason in reasons.OF_AGENT:
            return cause_text.agent_verdict(launcher.end)
        text = cause_text.pod_end("Launcher", launcher)
        return text + cause_text.first_failed_rank(pods, text)
    name = "Worker" if effective.policy == MPI else "Pod"
    return cause_text.pod_end(name, failed[0]) if failed else ""


def permanent_failure(effective: Effective, pods: Observed) -> Failure | None:
    """That of a job which its JobSet would only repeat."""
    for pod in pods.pods:
        if permanent_failures.has_invalid_image(pod):
            text = permanent_failures.invalid_image(pod)
            return Failure(pod.attempt, reasons.IMAGE_INVALID, text)
        reason = permanent_failures.reason(pod, pods) if pod.phase == pod_status.FAILED else ""
        if reason:
            failure = Failure(pod.attempt, reason, failure_cause(effective, pods))
            return permanent_failures.explained(failure, retries=True)
    return None
