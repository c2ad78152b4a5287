"""What is known of how a job's processes ended, as a diagnosis takes it. Pure.

Backends have values of their own for pods and ranks; all that is read of them is named here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from mpi_trainer.api.kinds.pod_status import OOM_KILLED, DetailedPodStatus
from mpi_trainer.diagnose.evidence import Meta, Pod
from mpi_trainer.diagnose.finding import Facts
from mpi_trainer.layout.agent.summary import BadRank, OnHost, Ranks, Summary

_NOT_COUNTED: Mapping[str, int | None] = {}


class _Ended(Protocol):
    """By an exit code or a signal, where either is known; `reason` is the kubelet's or kernel's."""

    @property
    def exit_code(self) -> int | None: ...

    @property
    def signal(self) -> int | None: ...

    @property
    def reason(self) -> str: ...


class EndedPod(_Ended, Protocol):
    @property
    def name(self) -> str: ...

    @property
    def role(self) -> str: ...


class EndedRank(_Ended, Protocol):
    @property
    def rank(self) -> int: ...

    @property
    def pod(self) -> str: ...


def of_ends(
    pods: Iterable[EndedPod],
    ranks: Iterable[EndedRank],
    first: int | None = None,
    memory_kills: Mapping[str, int | None] = _NOT_COUNTED,
) -> Facts:
    """`first` is the rank that failed before the others, where somebody knows. `memory_kills` are
    how many processes the kernel has killed for memory in each pod, where it counts them."""
    pods, ranks = tuple(pods), tuple(ranks)
    launcher = next((pod for pod in pods if pod.role == "launcher" and _known(pod)), None)
    bad = [_bad(rank) for rank in ranks if _known(rank) and rank.exit_code != 0]
    return Facts(
        exit_code=launcher.exit_code if launcher is not None else None,
        signal=launcher.signal if launcher is not None else None,
        summary=Summary(
            level="full",
            bad=tuple(sorted(bad, key=lambda b: b.rank != first)),
            hosts=tuple(OnHost(pod, Ranks(), oom=killed) for pod, killed in memory_kills.items()),
        ),
        pods=tuple(
            Pod(metadata=Meta(name=pod.name), status=DetailedPodStatus(reason=pod.reason))
            for pod in pods
            if pod.reason
        ),
        hosts=tuple((rank.rank, rank.pod) for rank in ranks if rank.pod),
    )


def _known(ended: _Ended) -> bool:
    return ended.exit_code is not None or ended.signal is not None


def _bad(rank: EndedRank) -> BadRank:
    return BadRank(
        rank=rank.rank,
        pod=rank.pod,
        status=rank.exit_code,
        signal=rank.signal,
        oom=rank.reason == OOM_KILLED,
    )
