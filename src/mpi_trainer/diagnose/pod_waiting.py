"""Why pods do not run: the sentences that a job's status, `describe` and `wait` share. Pure.

    sentence([("a", cause(a)), ("b", cause(b))], 3) -> "2 of 3 pods have no node: …"

What the scheduler and the kubelet say is put into numbers where it has any, and quoted where it has
not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds import pod_status
from mpi_trainer.diagnose import refusals

_LONGEST = 300
_CAUSES_SHOWN = 2
_NODES = re.compile(r"^0/(?P<all>\d{1,9}) nodes are available: (?P<why>.*)$", re.S)
_SHARE = re.compile(r"(?:^|, )(?P<count>\d{1,9}) (?P<what>[^,]+(?:\{[^}]*\}[^,]*)?)")
_ABSENT = "do not exist"
_BACK_OFF = "ImagePullBackOff"
_BACK_OFF_PREFACE = 'Back-off pulling image "'
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


class WaitingPod(msgspec.Struct, frozen=True):
    """What is known of a pod; what the caller does not know stays empty.

    `reason` is the kubelet's for a container that waits. `message` is what the kubelet says of it
    or, of a pod without a node, the scheduler. `volume` is what the kubelet says of a volume that
    it cannot mount, `requests` what the pod asks for and `hint` what more is known of nodes.
    """

    phase: str = pod_status.PENDING
    ready: bool = False
    scheduled: bool = True
    terminating: bool = False
    reason: str = ""
    message: str = ""
    image: str = ""
    gates: tuple[str, ...] = ()
    volume: str = ""
    preparing: bool = False
    init_container: str = ""
    requests: str = ""
    hint: str = ""
    restarts: int = 0
    exit_code: int | None = None


def cause(pod: WaitingPod) -> str:
    """The end of a sentence about pods like this one; empty where it runs, or has ended."""
    if pod.terminating:
        said = f" ({short(pod.message)})" if pod.message else ""
        return f"are being deleted, and their node has not confirmed it{said}"
    if pod.phase == pod_status.PENDING:
        return _pending(pod)
    if pod.phase == pod_status.RUNNING and not pod.ready:
        if pod.reason not in pod_status.STARTING:
            return _container_waits(pod)
        return "run and are not ready" + (f": {short(pod.message)}" if pod.message else "")
    return ""


def absent(message: str = "") -> str:
    """The cause of pods that do not exist; `message` is what the API server said of them."""
    message = message[: bounds.MESSAGE]
    why = refusals.over_quota(message) or short(message)
    return f"{_ABSENT}: {why}" if why else f"{_ABSENT} yet"


def sentence(causes: Iterable[tuple[str, str]], wanted: int) -> str:
    """Pods by name, each with its cause, as one sentence: the most frequent causes first."""
    groups: dict[str, list[str]] = {}
    for name, why in causes:
        groups.setdefault(why, []).append(name)
    ranked = sorted(groups.items(), key=lambda each: -len(each[1]))
    if len(ranked) == 1 and ranked[0][0].startswith(_ABSENT) and len(ranked[0][1]) == wanted:
        return f"none of its {wanted} pods exists{ranked[0][0].removeprefix(_ABSENT)}"
    parts = [f"{len(names)} of {wanted} pods {why}" for why, names in ranked[:_CAUSES_SHOWN]]
    if more := sum(len(names) for _, names in ranked[_CAUSES_SHOWN:]):
        parts.append(f"and {more} wait for other things")
    return "; ".join(parts)


def named_sentence(causes: list[tuple[str, str]], wanted: int) -> str:
    """The sentence and whom it is about, for readers who have no list of pods beside it."""
    first = causes[0][0]
    names = first if len(causes) == 1 else f"{first} and {len(causes) - 1} more"
    return f"{sentence(causes, wanted)} ({names})"


def timeout_message(
    causes: list[tuple[str, str]], wanted: int, seconds: int, setting: str, unplaced: bool
) -> str:
    """Why a job has ended whose pods did not run within `seconds`, which `setting` says."""
    remedy = "ask for fewer or smaller pods, free resources" if unplaced else "see to the cause"
    why = named_sentence(causes, wanted)
    return f"Not all pods ran within {seconds} s: {why}; {remedy}, or raise {setting}."


def short(text: str) -> str:
    """As one line of bounded length."""
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _pending(pod: WaitingPod) -> str:
    if pod.gates:
        return f"are held back by {', '.join(pod.gates)}"
    if not pod.scheduled:
        return f"have no node: {_unscheduled(pod)}"
    if pod.reason not in pod_status.STARTING:
        return _container_waits(pod)
    if pod.volume:
        return f"wait for a volume: {short(pod.volume)}"
    if pod.preparing:
        by = f" by `{pod.init_container}`" if pod.init_container else ""
        return f"are being prepared{by}"
    return "have their node, which starts them (pulling images, making volumes)"


def _container_waits(pod: WaitingPod) -> str:
    if pod.reason in pod_status.NO_IMAGE:
        return _no_image(pod)
    if pod.reason == pod_status.CRASHES_AGAIN:
        times = f": {pod.restarts} times" if pod.restarts else ""
        code = "" if pod.exit_code is None else f", last with exit code {pod.exit_code}"
        return f"crash again and again{times}{code}"
    return f"cannot start ({pod.reason})" + (f": {short(pod.message)}" if pod.message else "")


def _no_image(pod: WaitingPod) -> str:
    """With what to do about it: an image that was not there will not come by itself."""
    image = f"image `{pod.image}`" if pod.image else "an image"
    if pod.reason == pod_status.INVALID_IMAGE_NAME:
        return f"cannot get {image}: that is no name of an image; correct it in the job"
    if pod.reason == pod_status.IMAGE_NEVER_PULLED:
        return f"cannot get {image}: nodes lack it, and imagePullPolicy Never forbids more"
    low = pod.message.lower()
    remedy = next((r for words, r in _PULL_REMEDIES if any(w in low for w in words)), _PULL_REMEDY)
    said = f"{short(_pull_error(pod.message))}; " if pod.message else ""
    return f"cannot get {image} ({_BACK_OFF}): {said}{remedy}"


def _pull_error(message: str) -> str:
    """Without the kubelet's preface: a pod has it in every second answer, and what is said of pods
    would change each time."""
    if not message.startswith(_BACK_OFF_PREFACE):
        return message
    return message.partition('": ')[2].removeprefix("ErrImagePull: ") or message


def _unscheduled(pod: WaitingPod) -> str:
    each = f"each asks for {pod.requests}; " if pod.requests else ""
    if not pod.message:
        return f"{each}no scheduler has looked at them yet"
    # The first sentence is about the pod; those about claims and preemption follow from it.
    found = _NODES.match(pod.message.partition(". ")[0].rstrip("."))
    if found is None:
        return f"{each}{short(pod.message)}"
    counted: Counter[str] = Counter()
    for share in _SHARE.finditer(found["why"]):
        counted[_lack(share["what"].strip())] += int(share["count"])
    if not counted:
        # No node is at fault: a claim that does not exist, say.
        return short(found["why"])
    shares = ", ".join(f"{count} {what}" for what, count in counted.most_common())
    return f"{each}of {found['all']} nodes {shares}{pod.hint}"


def _lack(what: str) -> str:
    if what.startswith("Insufficient "):
        return f"have too little {what.removeprefix('Insufficient ')} left"
    return what.replace("node(s) ", "")
