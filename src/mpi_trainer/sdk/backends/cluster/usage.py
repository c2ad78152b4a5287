"""What the pods of jobs use, by the cluster's metrics API, else by the pods themselves (AC-10).

Asked first is `metrics.k8s.io`, as `kubectl top` does. Where it is missing, closed to the caller or
does not answer, pods are entered and read their own control group, for whoever may enter them. Of
pods that have ended the launcher's summary has the peaks. Whatever stays unknown is said in words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from mpi_trainer.api import quantities
from mpi_trainer.api.kinds.meta import ApiValue
from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import ApiError, Forbidden, KubeError, NotFound, Unreachable
from mpi_trainer.kube.resources import Resource
from mpi_trainer.layout.agent.summary import parse
from mpi_trainer.sdk.backends.backend import Key
from mpi_trainer.sdk.backends.cluster import exec, gpu_metrics
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.errors import translated
from mpi_trainer.sdk.backends.cluster.find import FoundJob, find
from mpi_trainer.sdk.backends.cluster.job_logs import pods_of
from mpi_trainer.sdk.backends.cluster.kinds import Kind
from mpi_trainer.sdk.backends.cluster.observed import Meta, Pod
from mpi_trainer.sdk.backends.usage import JobUsage, PodUsage, nothing_runs, with_gpus

POD_METRICS: Final = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")
API: Final = "metrics API"
CONTROL_GROUPS: Final = "the pods' control groups"
SUMMARY: Final = "the launcher's summary"
MOST_ENTERED: Final = 64
OVERVIEW_SECONDS: Final = 5.0
_AT_ONCE: Final = 16


class _Container(ApiValue, frozen=True):
    usage: Mapping[str, str] = {}


class _PodMetrics(ApiValue, frozen=True):
    metadata: Meta = Meta()
    containers: tuple[_Container, ...] = ()


class _Measured(ApiValue, frozen=True):
    items: tuple[_PodMetrics, ...] = ()


class _Refused(msgspec.Struct, frozen=True):
    """Why the metrics API gave nothing."""

    note: str


async def usage(
    server: ApiServer, keys: Sequence[Key], sources: Sequence[str]
) -> dict[Key, JobUsage]:
    """Of the jobs that are there. `sources` are the pages with GPU figures."""
    gate = asyncio.Semaphore(_AT_ONCE)
    pages = await gpu_metrics.read(server, sources)

    async def one(key: Key) -> JobUsage | None:
        async with gate:
            try:
                found = await find(server, key)
            except NotFound:
                return None
            used = await _job(server, key, found)
        gpus = {name: gpus for (space, name), gpus in pages.gpus.items() if space == key.namespace}
        used = with_gpus(used, gpus)
        return msgspec.structs.replace(used, notes=(*used.notes, *pages.problems))

    answers = await asyncio.gather(*(one(key) for key in keys))
    return {answer.key: answer for answer in answers if answer is not None}


async def cpus_in_use(server: ApiServer, namespace: str) -> float | None:
    """Busy cores of the pods of all jobs, by the metrics API alone: no pod is entered."""
    labels = sorted({kind.label for kind in server.served})
    answers = await asyncio.gather(*(_all_measured(server, namespace, one) for one in labels))
    known = [answer for answer in answers if answer is not None]
    return sum(known) if known else None


async def _all_measured(server: ApiServer, namespace: str, label: str) -> float | None:
    request = requests.list_page(POD_METRICS, namespace, label, limit=0)
    patient = msgspec.structs.replace(request, tries=1, timeout=OVERVIEW_SECONDS)
    try:
        found: _Measured = await server.client.call(patient, _Measured)
    except KubeError:
        return None
    return sum(_sum(pod, "cpu") or 0.0 for pod in found.items)


async def _job(server: ApiServer, key: Key, found: FoundJob) -> JobUsage:
    pods = await pods_of(server, key, found.kind)
    running = sorted(
        (pod for pod in pods if pod.status.phase == "Running"),
        key=lambda pod: (pod.role, pod.attempt, pod.index, pod.name),
    )
    # Workers that a cleanPodPolicy keeps do nothing any more.
    if found.finished or not running:
        return _ended(key, pods)
    measured = await _measured(server, key, found.kind)
    if isinstance(measured, _Refused):
        return await _entered(server, key, running, measured.note)
    used = tuple(_pod_usage(pod.name, measured.get(pod.name)) for pod in running)
    late = [pod.pod for pod in used if not pod.known]
    return JobUsage(key, used, API, (_too_early(key, late, len(used)),) if late else ())


async def _measured(server: ApiServer, key: Key, kind: Kind) -> dict[str, _PodMetrics] | _Refused:
    """By the names of pods."""
    request = requests.list_page(POD_METRICS, key.namespace, kind.selector(key), limit=0)
    try:
        # One try: an API that is served by a pod of the cluster may be away for long.
        found = await server.client.call(msgspec.structs.replace(request, tries=1), _Measured)
    except NotFound:
        return _Refused(
            "this cluster has no metrics API (metrics.k8s.io): ask an administrator to install "
            "metrics-server"
        )
    except Forbidden as error:
        refused = translated(error)
        return _Refused(f"{refused.problem}: {refused.hint[:1].lower()}{refused.hint[1:]}")
    except KubeError as error:
        said = error.message if isinstance(error, ApiError) else str(error)
        return _Refused(
            f"the metrics API does not answer ({said}): see "
            "`kubectl get apiservice v1beta1.metrics.k8s.io`"
        )
    return {one.metadata.name: one for one in found.items}


def _pod_usage(name: str, found: _PodMetrics | None) -> PodUsage:
    if found is None:
        return PodUsage(name)
    cpus, memory = (_sum(found, what) for what in ("cpu", "memory"))
    return PodUsage(name, cpus, None if memory is None else int(memory))


def _sum(found: _PodMetrics, what: str) -> float | None:
    """Over its containers; None where one of them is not a number."""
    try:
        figures = [quantities.parse(one.usage[what]) for one in found.containers]
    except (KeyError, ValueError):
        return None
    return float(sum(figures)) if figures else None


def _too_early(key: Key, late: Sequence[str], running: int) -> str:
    which = f"{len(late)} of {running} pods of {key}" if running > 1 else f"pod {late[0]}"
    verb = "are" if running > 1 else "is"
    return (
        f"{which} {verb} not measured yet: the metrics API knows a pod some 15 to 60 seconds "
        "after it has started; try again"
    )


async def _entered(server: ApiServer, key: Key, running: Sequence[Pod], why: str) -> JobUsage:
    """By the pods themselves; `why` the metrics API could not be asked."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(pod: Pod) -> PodUsage | KubeError:
        async with gate:
            try:
                cpus, memory = await exec.usage(server, pod)
            except KubeError as error:
                return error
        return PodUsage(pod.name, cpus, memory)

    first = await one(running[0])
    if isinstance(first, Forbidden):
        note = f"{why}; or ask for the right `create` on `pods/exec`, by which pods are asked"
        return JobUsage(key, tuple(PodUsage(pod.name) for pod in running), "", (note,))
    others = await asyncio.gather(*(one(pod) for pod in running[1:MOST_ENTERED]))
    answers = (first, *others)
    known = {answer.pod: answer for answer in answers if isinstance(answer, PodUsage)}
    used = tuple(known.get(pod.name, PodUsage(pod.name)) for pod in running)
    notes = [f"measured in the pods, because {why}"]
    if len(running) > MOST_ENTERED:
        notes.append(f"only the first {MOST_ENTERED} pods of {key} were entered")
    broken = [answer for answer in answers if isinstance(answer, KubeError)]
    if broken:
        said = broken[0] if isinstance(broken[0], Unreachable) else translated(broken[0]).problem
        notes.append(f"{len(broken)} pods of {key} could not be entered: {said}")
    return JobUsage(key, used, CONTROL_GROUPS, tuple(notes))


def _ended(key: Key, pods: Sequence[Pod]) -> JobUsage:
    """Peaks by what the last launcher that has ended says."""
    launchers = sorted((pod for pod in pods if pod.role == "launcher"), key=lambda p: p.attempt)
    ended = launchers[-1].main.state.terminated if launchers else None
    hosts = parse(ended.message).hosts if ended else ()
    used = tuple(PodUsage(h.pod, peak_memory_bytes=h.peak) for h in hosts if h.peak is not None)
    return JobUsage(key, used, SUMMARY) if used else nothing_runs(key)
