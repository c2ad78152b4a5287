"""Why a job does not run yet, from all that a cluster knows of it: one sentence. Pure.

The nearest cause is told: a job that is queued has no pods yet, so nothing about pods is said.
Empty where the job waits for nothing that can be seen. The words about pods are `pod_waiting`'s,
which the controller uses too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

from mpi_trainer.api import quantities
from mpi_trainer.api.kinds import pod_status
from mpi_trainer.api.kinds.pod_status import DetailedContainerStatus
from mpi_trainer.api.quantities import resource_text
from mpi_trainer.diagnose.evidence import Amounts, Evidence, Pod, Workload
from mpi_trainer.diagnose.pod_waiting import WaitingPod, absent, cause, sentence, short

_MOUNTS = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
_SHOWN = ("nvidia.com/gpu", "amd.com/gpu", "cpu", "memory")


def why(evidence: Evidence) -> str:
    """Empty where nothing is waited for."""
    if evidence.suspended or (evidence.workload and not evidence.pods):
        return _queued(evidence)
    missing = evidence.wanted - len(evidence.pods)
    refused = _refusal(evidence)
    if not evidence.pods and not refused and not evidence.served:
        return (
            "no controller has taken notice of it: the cluster has the MPIJob definition, but "
            "nothing seems to serve it"
        )
    causes = [(pod.name, found) for pod in evidence.pods if (found := _pod_cause(pod, evidence))]
    if missing > 0 and (refused or not evidence.pods):
        causes += [("", absent(refused))] * missing
    return sentence(causes, evidence.wanted)


# --- before there are pods -----------------------------------------------------------------------


def _queued(evidence: Evidence) -> str:
    workload = evidence.workload
    if workload is None and not evidence.queue:
        return "it is suspended, and starts when somebody resumes it"
    queue = (workload.spec.queue_name if workload else "") or evidence.queue
    if workload is None:
        return f"it is in queue `{queue}`, and Kueue has not taken notice of it: does it run here?"
    return f"it is in queue `{queue}`: {_kueue(workload)}"


def _kueue(workload: Workload) -> str:
    if not workload.spec.active:
        return "somebody has set its Workload inactive"
    reserved = workload.condition("QuotaReserved", "False")
    evicted = workload.condition("Evicted", "True")
    if workload.condition("QuotaReserved", "True"):
        admitted = workload.condition("Admitted", "True")
        where = workload.status.admission.cluster_queue
        return (
            f"admitted by ClusterQueue `{where}`, its pods come next"
            if admitted
            else f"ClusterQueue `{where}` has room for it, and an admission check is not done yet"
        )
    if evicted and not reserved:
        return f"it had to make room: {short(evicted.message)}"
    if reserved and reserved.message:
        before = f" (it had to make room before: {evicted.reason})" if evicted else ""
        return short(reserved.message) + before
    return "Kueue has not looked at it yet"


def _refusal(evidence: Evidence) -> str:
    """Why pods could not be made, from what was said last about it."""
    refused = (
        event.message
        for event in reversed(evidence.events)
        if event.type == "Warning" and "forbidden" in event.message.lower()
    )
    return next(refused, "") or next(_full(evidence), "")


def _full(evidence: Evidence) -> Iterator[str]:
    for quota in evidence.quotas:
        for name, hard in quota.status.hard.items():
            used = quota.status.used.get(name, "0")
            if name in ("pods", "count/pods") and quantities.parse(used) >= quantities.parse(hard):
                yield (
                    f"quota exceeded: `{quota.metadata.name}` has no room: {used} of {hard} {name} "
                    "in use"
                )


# --- pods that do not run ------------------------------------------------------------------------


def _pod_cause(pod: Pod, evidence: Evidence) -> str:
    waiting = _waiting_container(pod)
    state = waiting.state.waiting if waiting is not None else None
    crashed = waiting.last_state.terminated if waiting is not None else None
    preparing = next((s for s in pod.status.init_container_statuses if s.state.running), None)
    mounts = [
        event.message
        for event in evidence.events
        if event.reason in _MOUNTS and event.involved_object.name == pod.name
    ]
    return cause(
        WaitingPod(
            phase=pod.status.phase,
            ready=pod.condition(pod_status.READY, "True") is not None,
            scheduled=bool(pod.spec.node_name),
            terminating=pod.metadata.deletion_timestamp is not None,
            reason=state.reason if state is not None else "",
            message=state.message if state is not None else _condition_message(pod),
            image=waiting.image if waiting is not None else "",
            gates=tuple(gate.name for gate in pod.spec.scheduling_gates),
            volume=mounts[-1] if mounts else "",
            preparing=preparing is not None,
            init_container=preparing.name if preparing is not None else "",
            requests=_requests(pod),
            hint=_largest(pod, evidence),
            restarts=waiting.restart_count if waiting is not None else 0,
            exit_code=crashed.exit_code if crashed is not None else None,
        )
    )


def _waiting_container(pod: Pod) -> DetailedContainerStatus | None:
    """The first whose reason says more than that it starts."""
    for one in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = one.state.waiting
        if waiting is not None and waiting.reason not in pod_status.STARTING:
            return one
    return None


def _condition_message(pod: Pod) -> str:
    """What the scheduler says of a pod without a node, the kubelet of one that is not ready."""
    if pod.metadata.deletion_timestamp is not None:
        return ""
    kind = pod_status.READY if pod.spec.node_name else pod_status.POD_SCHEDULED
    found = pod.condition(kind, "False")
    if found is None or (kind == pod_status.READY and pod.status.phase == pod_status.PENDING):
        return ""
    return found.message or (found.reason if kind == pod_status.POD_SCHEDULED else "")


def _largest(pod: Pod, evidence: Evidence) -> str:
    """Where no node could ever hold the pod, that is the thing to say."""
    for name, amount in _amounts(pod).items():
        have = [
            quantities.parse(node.status.allocatable.get(name, "0"))
            for node in evidence.nodes
            if not node.spec.unschedulable
        ]
        if have and max(have) < amount:
            return (
                f"; the largest node has {resource_text(name, max(have))} {name}, so it never can"
            )
    return ""


def _requests(pod: Pod) -> str:
    amounts = _amounts(pod)
    ordered = [name for name in _SHOWN if name in amounts]
    ordered += [name for name in amounts if name not in _SHOWN]
    return ", ".join(f"{resource_text(name, amounts[name])} {name}" for name in ordered)


def _amounts(pod: Pod) -> dict[str, Decimal]:
    total: dict[str, Decimal] = {}
    for amounts in _requested(pod):
        for name, amount in amounts.items():
            total[name] = total.get(name, Decimal(0)) + quantities.parse(amount)
    return {name: amount for name, amount in total.items() if amount}


def _requested(pod: Pod) -> Iterable[Amounts]:
    return [{**c.resources.limits, **c.resources.requests} for c in pod.spec.containers]
