"""`odh mpijob wait`: until a job has come to a state; it ends at once where it never can."""

from __future__ import annotations

import click

from mpi_trainer.api.kinds import conditions
from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.main import FAILED, INTERRUPTED
from mpi_trainer.cli.output.verbosity import detail, say, verbosity_options
from mpi_trainer.cli.verbs.mpijob import following, options
from mpi_trainer.sdk.backends.backend import Backend, Key
from mpi_trainer.sdk.errors import JobFailed, JobNotFound

FINISHED = "Finished"
DELETED = "Deleted"
AIMS = (*conditions.STATES, FINISHED, DELETED)


@click.command("wait")
@options.name
@options.namespace
@click.option(
    "--for", "aim", type=click.Choice(AIMS, case_sensitive=False), default=conditions.SUCCEEDED,
    show_default=True, help="The state to wait for; Finished is either end.",
)  # fmt: skip
@options.timeout
@verbosity_options
def command(*, name: str, namespace: str, aim: str, timeout: float | None) -> int:
    """Wait until a job reaches a state.

    \b
    odh mpijob wait train                               until it has succeeded
    odh mpijob wait train --for Running --timeout 5m

    Exit codes: 0 it has; 1 it ended otherwise, so it never will; 124 the time is over.
    """
    key = Key(namespace, name)
    backend = connect()

    async def waiting() -> int:
        return await following.within(timeout, lambda: until(backend, key, aim), key, aim)

    try:
        return run_async(waiting())
    except KeyboardInterrupt:
        return INTERRUPTED


async def until(backend: Backend, key: Key, aim: str) -> int:
    state = ""
    if aim == DELETED and not await _exists(backend, key):
        say(f"{key.name} is deleted")
        return 0
    async for job in following.watched(backend, key):
        state = job.state
        detail(f"{key.name} is {state}: {job.message}")
        if _reached(state, aim):
            say(f"{key.name} is {state}")
            return 0
    if aim == DELETED:
        while await _exists(backend, key):
            await following.pause()
        say(f"{key.name} is deleted")
        return 0
    if not await _exists(backend, key):
        raise JobNotFound(f"job {key.name} was deleted before it was {aim}")
    if state == conditions.FAILED and aim in (conditions.SUCCEEDED, conditions.RUNNING):
        return following.report_end(await backend.get(key)) or FAILED
    raise JobFailed(f"job {key.name} ended {state} and will not be {aim}")


def _reached(state: str, aim: str) -> bool:
    if aim == FINISHED:
        return state in (conditions.SUCCEEDED, conditions.FAILED)
    # Whoever waits for a start is content with a job that has already run to its end.
    later = {conditions.RUNNING: (conditions.SUCCEEDED,), conditions.CREATED: conditions.STATES}
    return state == aim or state in later.get(aim, ())


async def _exists(backend: Backend, key: Key) -> bool:
    try:
        await backend.get(key)
    except JobNotFound:
        return False
    return True
