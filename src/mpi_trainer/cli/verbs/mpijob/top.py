"""`odh top`, `odh mpijob top`: what jobs use now, by pod."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import click

from mpi_trainer.api.kinds import conditions
from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.output import formats, terminal
from mpi_trainer.cli.output.formats import Format
from mpi_trainer.cli.output.verbosity import say, verbosity_options
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.sdk.backends.backend import Backend, Key
from mpi_trainer.sdk.backends.usage import MEBIBYTE, GpuUsage, JobUsage, PodUsage

BETWEEN_SECONDS = 1.0


@click.command("top")
@options.names
@options.namespace
@options.every_namespace
@click.option("-w", "--watch", is_flag=True, help="Go on until Ctrl-C.")
@click.option(
    "--gpu-metrics", "sources", multiple=True, metavar="URL",
    help="A page of NVIDIA's DCGM exporter, or of a Prometheus that reads it: an address, or a "
    "path of the API server's proxy. May be repeated.  [default: $MPI_TRAINER_GPU_METRICS]",
)  # fmt: skip
@options.data_output
@verbosity_options
def command(
    *,
    names: tuple[str, ...],
    namespace: str,
    everywhere: bool,
    watch: bool,
    sources: tuple[str, ...],
    form: Format,
) -> None:
    """Show CPU, memory and GPUs that jobs use now, pod by pod.

    On a cluster the figures are those of its metrics API, as with `kubectl top pods`. Where there
    is none, pods are asked themselves, which needs the right to enter them.

    \b
    odh top                   the jobs that run
    odh top train             one of them, or its peaks where it has ended
    """
    backend = connect()
    keys = [Key(namespace, name) for name in names]
    screen = terminal.Screen()
    while True:
        work = _usage(backend, keys, None if everywhere else namespace, sources or None)
        used = run_async(work)
        pods = [(one.key, pod) for one in used for pod in one.pods]
        if form.structured:
            click.echo(formats.rendered(_data(used), form))
        elif pods or watch:
            screen.draw(_table(pods) if pods else "no jobs are running")
        elif not used:
            say("no jobs are running")
        if not watch:
            for note in dict.fromkeys(note for one in used for note in one.notes):
                say(terminal.inert(note))
            return
        time.sleep(BETWEEN_SECONDS)


async def _usage(
    backend: Backend, keys: Sequence[Key], namespace: str | None, sources: Sequence[str] | None
) -> list[JobUsage]:
    """Of the jobs that are named, which must be there; else of those that run."""
    asked = keys or [
        job.key for job in await backend.list(namespace) if job.state == conditions.RUNNING
    ]
    found = await backend.usage(asked, sources)
    for key in keys:
        if key not in found:
            await backend.get(key)  # says that it is not there
    return [found[key] for key in asked if key in found]


def _data(used: Sequence[JobUsage]) -> dict[str, Any]:
    return {
        "items": [_item(one.key, pod, one.source) for one in used for pod in one.pods],
        "notes": list(dict.fromkeys(note for one in used for note in one.notes)),
    }


def _item(key: Key, pod: PodUsage, source: str) -> dict[str, Any]:
    return {
        "namespace": key.namespace,
        "job": key.name,
        "pod": pod.pod,
        "cpus": pod.cpus,
        "memoryBytes": pod.memory_bytes,
        "peakMemoryBytes": pod.peak_memory_bytes,
        "gpus": [
            {
                "gpu": gpu.gpu,
                "model": gpu.model,
                "percent": gpu.percent,
                "memoryBytes": gpu.memory_bytes,
                "memoryTotalBytes": gpu.memory_total_bytes,
            }
            for gpu in pod.gpus
        ],
        "source": source,
    }


def _table(pods: Sequence[tuple[Key, PodUsage]]) -> str:
    """Columns that no pod has a figure for are left out, but CPU and memory."""
    with_peaks = any(pod.peak_memory_bytes is not None for _, pod in pods)
    with_gpus = any(pod.gpus for _, pod in pods)
    header = ["JOB", "POD", "CPUS", "MEMORY"]
    header += ["PEAK"] * with_peaks + ["GPUS", "GPU MEMORY"] * with_gpus
    rows = []
    for key, pod in pods:
        row = [key.name, pod.pod, _cpus(pod), _memory(pod.memory_bytes)]
        row += [_memory(pod.peak_memory_bytes)] * with_peaks
        row += [_busy(pod.gpus), _gpu_memory(pod.gpus)] * with_gpus
        rows.append(row)
    return terminal.table(header, rows)


def _cpus(pod: PodUsage) -> str:
    return "-" if pod.cpus is None else f"{pod.cpus:.2f}"


def _memory(size: int | None) -> str:
    return "-" if size is None else f"{size // MEBIBYTE} MiB"


def _busy(gpus: Sequence[GpuUsage]) -> str:
    """`87 % 91 %`: one figure for each."""
    shown = ["-" if gpu.percent is None else f"{gpu.percent:.0f} %" for gpu in gpus]
    return " ".join(shown) or "-"


def _gpu_memory(gpus: Sequence[GpuUsage]) -> str:
    used = [gpu.memory_bytes for gpu in gpus if gpu.memory_bytes is not None]
    total = [gpu.memory_total_bytes for gpu in gpus if gpu.memory_total_bytes is not None]
    if not used:
        return "-"
    of = f" of {sum(total) // MEBIBYTE} MiB" if len(total) == len(used) else ""
    return f"{_memory(sum(used))}{of}"
