"""`odh mpijob watch`: a live view of a job; without a terminal, a line for each change."""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import UTC, datetime

import click

from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.output.live_view import headline, view
from mpi_trainer.cli.output.terminal import Screen
from mpi_trainer.cli.output.verbosity import verbosity_options
from mpi_trainer.cli.verbs.mpijob import following, options
from mpi_trainer.sdk.backends.backend import Backend, JobDetails, Key, LogLine, LogQuery
from mpi_trainer.sdk.errors import JobNotFound

EVERY_SECONDS = 0.3


@click.command("watch")
@options.name
@options.namespace
@click.option("--lines", type=click.IntRange(0, 100), default=8, help="Last lines of output.")
@verbosity_options
def command(*, name: str, namespace: str, lines: int) -> int:
    """A live view of a job: state, progress, ranks, last lines.

    \b
    odh mpijob watch train

    It ends with the job, and its exit code is the job's; Ctrl-C leaves the job running.
    """
    key = Key(namespace, name)
    try:
        return run_async(_watch(connect(), key, lines))
    except KeyboardInterrupt:
        return following.left(key, "watch")


async def _watch(backend: Backend, key: Key, count: int) -> int:
    details = await backend.details(key)
    last: deque[LogLine] = deque(maxlen=count)
    screen = Screen()
    reading = asyncio.create_task(_read(backend, key, last))
    try:
        while True:
            ended = details.job.finished
            if ended:
                await reading
            _draw(screen, details, last)
            if ended:
                break
            await asyncio.sleep(EVERY_SECONDS)
            details = await backend.details(key)
    except JobNotFound:
        pass  # the verdict says so
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    return await following.verdict(backend, key)


async def _read(backend: Backend, key: Key, last: deque[LogLine]) -> None:
    async for line in backend.logs(key, LogQuery(follow=True, tail=last.maxlen)):
        last.append(line)


def _draw(screen: Screen, details: JobDetails, last: deque[LogLine]) -> None:
    now = datetime.now(UTC)
    if screen.alive:
        screen.draw("\n".join(view(details, last, now, screen.width, screen.height)))
    else:
        # The time that has passed would make every look a change.
        screen.draw(headline(details, details.job.times.started or now))
