"""What the pods of a job use: CPU, memory and GPUs (AC-10, AC-11). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from mpi_trainer.sdk.backends.backend import Key, PodInfo

MEBIBYTE = 1 << 20


class GpuUsage(msgspec.Struct, frozen=True):
    """One GPU of a pod: how busy it is, and its memory."""

    gpu: str
    model: str = ""
    percent: float | None = None
    memory_bytes: int | None = None
    memory_total_bytes: int | None = None


class PodUsage(msgspec.Struct, frozen=True):
    """One pod: how many cores are busy, its memory now, and the most it has had."""

    pod: str
    cpus: float | None = None
    memory_bytes: int | None = None
    peak_memory_bytes: int | None = None
    gpus: tuple[GpuUsage, ...] = ()

    @property
    def known(self) -> bool:
        figures = (self.cpus, self.memory_bytes, self.peak_memory_bytes)
        return bool(self.gpus) or any(figure is not None for figure in figures)


class JobUsage(msgspec.Struct, frozen=True):
    """A job's pods. `source` says who measured; `notes` say what is not known, why, and what to
    do about it."""

    key: Key
    pods: tuple[PodUsage, ...] = ()
    source: str = ""
    notes: tuple[str, ...] = ()


def between(
    key: Key, first: Iterable[PodInfo], second: Iterable[PodInfo], seconds: float, source: str
) -> JobUsage:
    """From the CPU time of each pod at two moments."""
    before = {pod.name: pod.cpu_seconds for pod in first}
    pods = (
        PodUsage(pod.name, _rate(before.get(pod.name), pod.cpu_seconds, seconds), pod.memory_bytes)
        for pod in second
    )
    known = tuple(pod for pod in pods if pod.known)
    return JobUsage(key, known, source) if known else nothing_runs(key)


def nothing_runs(key: Key) -> JobUsage:
    return JobUsage(key, notes=(f"no pod of {key} runs",))


def _rate(before: float | None, after: float | None, seconds: float) -> float | None:
    if before is None or after is None:
        return None
    return max(after - before, 0.0) / seconds


def with_gpus(usage: JobUsage, gpus: Mapping[str, tuple[GpuUsage, ...]]) -> JobUsage:
    """With the GPUs of each pod, by the pod's name."""
    pods = (msgspec.structs.replace(pod, gpus=gpus.get(pod.pod, ())) for pod in usage.pods)
    return msgspec.structs.replace(usage, pods=tuple(pods))
