"""Why a job does not run yet: one sentence with numbers, for status, `describe` and `wait`. Pure.

    why(evidence) -> "2 of 3 pods have no node: each asks for 8 nvidia.com/gpu; …"

The nearest cause is told: a job that is queued has no pods yet, so nothing about pods is said.
What the cluster's own parts say is put into numbers where it has any, and quoted where it has not.
Empty where the job waits for nothing that can be seen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal

from mpi_trainer.api import quantities
from mpi_trainer.diagnose.evidence import Amounts, ContainerStatus, Evidence, Pod, Workload
from mpi_trainer.diagnose.refusals import EXCEEDED_QUOTA

_LONGEST = 300
_NODES = re.compile(r"^0/(?P<all>\d+) nodes are available: (?P<why>.*)$", re.S)
_SHARE = re.compile(r"(?:^|, )(?P<count>\d+) (?P<what>[^,]+(?:\{[^}]*\}[^,]*)?)")
_PULLS = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
_PULL_REMEDY = "check its name and tag, and that nodes can reach the registry"
_PULL_REMEDIES = (
    (
        ("unauthorized", "denied", "forbidden", "authentication", "credential"),
        "the registry wants credentials, or has no such image: name a Secret in imagePullSecrets, "
        "and check the name",
    ),
    (("not found", "manifest unknown", "does not exist"), "check its name and tag"),
    (
        ("no such host", "timeout", "refused", "unreachable", "i/o", "tls", "x509"),
        "the nodes cannot reach the registry",
    ),
)
_MOUNTS = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
_USUAL = frozenset({"", "PodInitializing", "ContainerCreating"})
_SHOWN = ("nvidia.com/gpu", "amd.com/gpu", "cpu", "memory")


def why(evidence: Evidence) -> str:
    """Empty where nothing is waited for."""
    if evidence.suspended or (evidence.workload and not evidence.pods):
        return _queued(evidence)
    missing = evidence.wanted - len(evidence.pods)
    if not evidence.pods:
        return _no_pods(evidence)
    causes: dict[str, list[str]] = {}
    for pod in evidence.pods:
        cause = _cause(pod, evidence)
        if cause:
            causes.setdefault(cause, []).append(pod.name)
    if missing > 0 and (refused := _refusal(evidence)):
        causes.setdefault(refused, []).extend([""] * missing)
    ranked = sorted(causes.items(), key=lambda each: -len(each[1]))
    parts = [f"{len(names)} of {evidence.wanted} pods {cause}" for cause, names in ranked[:2]]
    if len(ranked) > 2:
        parts.append(f"and {sum(len(names) for _, names in ranked[2:])} wait for other things")
    return "; ".join(parts)


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
        return f"it had to make room: {_short(evicted.message)}"
    if reserved and reserved.message:
        before = f" (it had to make room before: {evicted.reason})" if evicted else ""
        return _short(reserved.message) + before
    return "Kueue has not looked at it yet"


def _no_pods(evidence: Evidence) -> str:
    refused = _refusal(evidence)
    if refused:
        return (
            f"none of its {evidence.wanted} pods exists: {refused.removeprefix('do not exist: ')}"
        )
    if not evidence.served:
        return (
            "no controller has taken notice of it: the cluster has the MPIJob definition, but "
            "nothing seems to serve it"
        )
    return f"none of its {evidence.wanted} pods exists yet"


def _refusal(evidence: Evidence) -> str:
    """Why pods could not be made, from what was said last about it."""
    for event in reversed(evidence.events):
        if event.type != "Warning" or "forbidden" not in event.message.lower():
            continue
        found = EXCEEDED_QUOTA.search(event.message)
        return f"do not exist: {_over(found) if found else _short(event.message)}"
    full = next(_full(evidence), "")
    return f"do not exist: {full}" if full else ""


def _over(found: re.Match[str]) -> str:
    parts = [_pairs(found[name]) for name in ("asked", "used", "hard")]
    asked, used, hard = parts
    numbers = [
        f"{used.get(name, '0')} of {hard[name]} {name} are in use and the next pod asks for "
        f"{asked.get(name, '0')}"
        for name in hard
    ]
    return f"quota `{found['quota']}` has no room: {', '.join(numbers)}"


def _pairs(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.replace(" ", "").split(",") if "=" in part)


def _full(evidence: Evidence) -> Iterator[str]:
    for quota in evidence.quotas:
        for name, hard in quota.status.hard.items():
            used = quota.status.used.get(name, "0")
            if name in ("pods", "count/pods") and quantities.parse(used) >= quantities.parse(hard):
                yield f"quota `{quota.metadata.name}` has no room: {used} of {hard} {name} in use"


# --- pods that do not run ------------------------------------------------------------------------


def _cause(pod: Pod, evidence: Evidence) -> str:
    if pod.metadata.deletion_timestamp is not None:
        return "are being deleted, and their node has not confirmed it"
    if pod.status.phase == "Pending":
        return _pending(pod, evidence)
    if pod.status.phase == "Running" and pod.condition("Ready", "True") is None:
        return _unready(pod)
    return ""


def _pending(pod: Pod, evidence: Evidence) -> str:
    if pod.spec.scheduling_gates:
        gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
        return f"are held back by {gates}"
    if not pod.spec.node_name:
        return f"have no node: {_unplaced(pod, evidence)}"
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    for one in statuses:
        waiting = one.state.waiting
        if waiting is not None and waiting.reason not in _USUAL:
            return _held(one, waiting.reason, waiting.message)
    mounts = [e for e in evidence.events if e.reason in _MOUNTS and _about(e.involved_object, pod)]
    if mounts:
        return f"wait for a volume: {_short(mounts[-1].message)}"
    preparing = next((s for s in pod.status.init_container_statuses if s.state.running), None)
    if preparing is not None:
        return f"are being prepared by `{preparing.name}`"
    return "have their node, which starts them (pulling images, making volumes)"


def _about(about: object, pod: Pod) -> bool:
    return getattr(about, "name", "") == pod.name


def _held(status: ContainerStatus, reason: str, message: str) -> str:
    if reason in _PULLS:
        return _imageless(status.image, reason, message)
    if reason == "CrashLoopBackOff":
        ended = status.last_state.terminated
        code = f", last with exit code {ended.exit_code}" if ended else ""
        return f"crash again and again: {status.restart_count} times{code}"
    return f"cannot start ({reason}): {_short(message)}"


def _imageless(image: str, reason: str, message: str) -> str:
    """With what to do about it: an image that was not there will not come by itself."""
    if reason == "InvalidImageName":
        return f"cannot get image `{image}`: that is no name of an image; correct it in the job"
    if reason == "ErrImageNeverPull":
        return f"cannot get image `{image}`: nodes lack it, and imagePullPolicy Never forbids more"
    low = message.lower()
    remedy = next((r for words, r in _PULL_REMEDIES if any(w in low for w in words)), _PULL_REMEDY)
    return f"cannot get image `{image}` ({reason}): {_short(message)}; {remedy}"


def _unready(pod: Pod) -> str:
    for one in pod.status.container_statuses:
        waiting = one.state.waiting
        if waiting is not None and waiting.reason not in _USUAL:
            return _held(one, waiting.reason, waiting.message)
    ready = pod.condition("Ready", "False")
    said = f": {_short(ready.message)}" if ready and ready.message else ""
    return f"run and are not ready{said}"


def _unplaced(pod: Pod, evidence: Evidence) -> str:
    asked = _asked(pod)
    each = f"each asks for {asked}; " if asked else ""
    unplaced = pod.condition("PodScheduled", "False")
    if unplaced is None:
        return f"{each}no scheduler has looked at them yet"
    # The first sentence is about the pod; those about claims and preemption follow from it.
    found = _NODES.match(unplaced.message.partition(". ")[0].rstrip("."))
    if found is None:
        return f"{each}{_short(unplaced.message or unplaced.reason)}"
    counted: Counter[str] = Counter()
    for share in _SHARE.finditer(found["why"]):
        counted[_wording(share["what"].strip())] += int(share["count"])
    if not counted:
        # No node is at fault: a claim that does not exist, say.
        return _short(found["why"])
    shares = ", ".join(f"{count} {what}" for what, count in counted.most_common())
    return f"{each}of {found['all']} nodes {shares}{_largest(pod, evidence)}"


def _wording(what: str) -> str:
    if what.startswith("Insufficient "):
        return f"have too little {what.removeprefix('Insufficient ')} left"
    return what.replace("node(s) ", "")


def _largest(pod: Pod, evidence: Evidence) -> str:
    """Where no node could ever hold the pod, that is the thing to say."""
    for name, amount in _amounts(pod).items():
        have = [
            quantities.parse(node.status.allocatable.get(name, "0"))
            for node in evidence.nodes
            if not node.spec.unschedulable
        ]
        if have and max(have) < amount:
            return f"; the largest node has {_text(name, max(have))} {name}, so it never can"
    return ""


def _asked(pod: Pod) -> str:
    amounts = _amounts(pod)
    ordered = [name for name in _SHOWN if name in amounts]
    ordered += [name for name in amounts if name not in _SHOWN]
    return ", ".join(f"{_text(name, amounts[name])} {name}" for name in ordered)


def _amounts(pod: Pod) -> dict[str, Decimal]:
    total: dict[str, Decimal] = {}
    for amounts in _requested(pod):
        for name, amount in amounts.items():
            total[name] = total.get(name, Decimal(0)) + quantities.parse(amount)
    return {name: amount for name, amount in total.items() if amount}


def _requested(pod: Pod) -> Iterable[Amounts]:
    return [{**c.resources.limits, **c.resources.requests} for c in pod.spec.containers]


def _text(resource: str, amount: Decimal) -> str:
    sized = resource.endswith(("memory", "ephemeral-storage"))
    return quantities.binary_text(amount) if sized else quantities.decimal_text(amount)


def _short(text: str) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
