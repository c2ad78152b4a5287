"""How following a job ends: the last word about it, and the exit code that goes with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mpi_trainer.api.kinds import conditions
from mpi_trainer.cli import context
from mpi_trainer.cli.main import FAILED, INTERRUPTED
from mpi_trainer.cli.output import durations, terminal
from mpi_trainer.cli.output.verbosity import say
from mpi_trainer.sdk.backends.backend import Backend, JobView, Key
from mpi_trainer.sdk.errors import JobNotFound, JobTimeout

T = TypeVar("T")

LOOK_SECONDS = 0.2


async def verdict(backend: Backend, key: Key) -> int:
    """Says how the job ended, or that it is gone; 0 only for success."""
    try:
        job = await backend.get(key)
    except JobNotFound as error:
        raise JobNotFound(
            f"job {key.name} was deleted while it was followed",
            f"Its output is gone with it; run it again with `{context.command_line('create')}`.",
        ) from error
    return told(job)


def told(job: JobView) -> int:
    state = job.state
    took = durations.between(job.times.started, job.times.completed)
    if state == conditions.SUCCEEDED:
        say(f"{terminal.good(state)} after {took}")
        return 0
    if state == conditions.FAILED:
        terminal.say(f"{terminal.bad(state)} after {took}: {job.message}")
        say(f"see more with `{context.command_line('describe', job.name, job.namespace)}`")
        return FAILED
    say(f"{job.name} is {state}")
    return 0


def left(key: Key, verb: str) -> int:
    """After Ctrl-C: the job goes on, and this is how to come back."""
    terminal.say(
        f"\njob {key.name} goes on without you; come back with "
        f"`{context.command_line(verb, key.name, key.namespace)}`, "
        f"stop it with `{context.command_line('delete', key.name, key.namespace)}`"
    )
    return INTERRUPTED


async def pause() -> None:
    """Between two looks at something that nobody reports."""
    await asyncio.sleep(LOOK_SECONDS)


async def within(seconds: float | None, work: Callable[[], Awaitable[T]], key: Key, aim: str) -> T:
    """The work's result, or JobTimeout (exit code 124) after that long."""
    try:
        async with asyncio.timeout(seconds):
            return await work()
    except TimeoutError as error:
        if isinstance(error, JobTimeout):
            raise
        raise JobTimeout(
            f"job {key.name} was not {aim} within {durations.short(seconds or 0)}; it goes on",
            f"Look at it with `{context.command_line('describe', key.name, key.namespace)}`.",
        ) from error
