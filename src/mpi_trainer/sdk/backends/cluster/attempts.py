"""Which attempt of its job each pod belongs to. Pure.

Our MPIJobs' pods carry the number. Where another controller made them, or JobSet, launchers are
counted in the order of their making, beginning after the attempts that the job itself remembers.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from mpi_trainer.api.kinds.annotations import ATTEMPT
from mpi_trainer.api.kinds.labels import LABEL_RESTART_ATTEMPT
from mpi_trainer.decide.history import History
from mpi_trainer.sdk.backends.cluster.observed import Pod


class NumberedPod(msgspec.Struct, frozen=True):
    pod: Pod
    attempt: int


def numbered_pods(pods: Iterable[Pod], ended: History) -> list[NumberedPod]:
    """Oldest attempt first, and within one the oldest pod."""
    remembered = {one.pod: one.attempt for one in ended if one.pod}
    last = max((one.attempt for one in ended), default=0)
    found: list[NumberedPod] = []
    for pod in sorted(pods, key=lambda p: p.metadata.creation_timestamp):
        if ATTEMPT in pod.metadata.annotations:
            number = pod.attempt
        elif pod.role == "launcher":
            number = remembered.get(pod.name) or last + 1
            last = max(last, number)
        else:
            number = _restarts(pod) + 1
        found.append(NumberedPod(pod, number))
    return sorted(found, key=lambda one: one.attempt)


def _restarts(pod: Pod) -> int:
    text = pod.metadata.labels.get(LABEL_RESTART_ATTEMPT, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 8 else 0
