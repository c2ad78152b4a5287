"""`odh mpijob top`: what jobs use now, by pod."""

from __future__ import annotations

import asyncio
from typing import Any

import click
import msgspec

from mpi_trainer.api.kinds import conditions
from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.output import formats, terminal
from mpi_trainer.cli.output.formats import Format
from mpi_trainer.cli.output.verbosity import say, verbosity_options
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.sdk.backends.backend import Backend, Key, PodInfo
from mpi_trainer.sdk.errors import JobNotFound

BETWEEN_SECONDS = 0.5
MEBIBYTE = 1 << 20


class Use(msgspec.Struct, frozen=True):
    """`cpus` is how many cores were busy between the two looks."""

    namespace: str
    job: str
    pod: str
    cpus: float | None
    memory_bytes: int | None


@click.command("top")
@options.names
@options.namespace
@options.every_namespace
@click.option("-w", "--watch", is_flag=True, help="Go on until Ctrl-C.")
@options.data_output
@verbosity_options
def command(
    *, names: tuple[str, ...], namespace: str, everywhere: bool, watch: bool, form: Format
) -> None:
    """Show CPU and memory that jobs use now, pod by pod.

    \b
    odh mpijob top            the jobs that run
    odh mpijob top train      one of them
    """
    backend = connect()
    keys = [Key(namespace, name) for name in names]
    screen = terminal.Screen()
    while True:
        used = run_async(_measured(backend, keys, None if everywhere else namespace))
        if form.structured:
            click.echo(formats.rendered({"items": [_data(use) for use in used]}, form))
        elif used or watch:
            screen.draw(_table(used) if used else "nothing runs")
        else:
            say("nothing runs")
        if not watch:
            if used and all(use.memory_bytes is None for use in used):
                say(
                    "how much its pods use is not known here: `kubectl top pods` where the "
                    "cluster measures it"
                )
            return


async def _measured(backend: Backend, keys: list[Key], namespace: str | None) -> list[Use]:
    if not keys:
        found = await backend.list(namespace)
        keys = [job.key for job in found if job.state == conditions.RUNNING]
        first = {key: await _tolerated(backend, key) for key in keys}
    else:
        first = {key: (await backend.details(key)).pods for key in keys}
    await asyncio.sleep(BETWEEN_SECONDS)
    if not any(first.values()):
        return []
    used = []
    for key in keys:
        before = {pod.name: pod.cpu_seconds for pod in first[key]}
        for pod in await _tolerated(backend, key):
            used.append(
                Use(key.namespace, key.name, pod.name, _rate(before, pod), pod.memory_bytes)
            )
    return used


async def _tolerated(backend: Backend, key: Key) -> tuple[PodInfo, ...]:
    """A job may go away between two looks."""
    try:
        return (await backend.details(key)).pods
    except JobNotFound:
        return ()


def _rate(before: dict[str, float | None], pod: PodInfo) -> float | None:
    earlier = before.get(pod.name)
    if earlier is None or pod.cpu_seconds is None:
        return None
    return max(pod.cpu_seconds - earlier, 0.0) / BETWEEN_SECONDS


def _data(use: Use) -> dict[str, Any]:
    return {
        "namespace": use.namespace,
        "job": use.job,
        "pod": use.pod,
        "cpus": use.cpus,
        "memoryBytes": use.memory_bytes,
    }


def _table(used: list[Use]) -> str:
    rows = [
        (
            use.job,
            use.pod,
            "-" if use.cpus is None else f"{use.cpus:.2f}",
            "-" if use.memory_bytes is None else f"{use.memory_bytes // MEBIBYTE} MiB",
        )
        for use in used
    ]
    return terminal.table(("JOB", "POD", "CPUS", "MEMORY"), rows)
