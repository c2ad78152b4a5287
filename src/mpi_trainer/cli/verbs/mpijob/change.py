"""One change to several jobs, each told as it is done; the wait afterwards, where one is asked."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import click

from mpi_trainer.api.kinds import conditions
from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.output import formatting
from mpi_trainer.cli.verbs.mpijob import exit_status
from mpi_trainer.cli.verbs.mpijob.wait import until
from mpi_trainer.sdk.backends.backend import Backend, JobView, Key
from mpi_trainer.sdk.errors import JobError

Change = Callable[[Backend, Key], Coroutine[Any, Any, JobView]]


def changed(
    done: str,
    names: tuple[str, ...],
    namespace: str,
    change: Change,
    wait: tuple[str, float | None],
) -> int:
    """Changes each job; `wait` is the state to wait for (or none) and for how long at most."""
    backend, keys = connect(), [Key(namespace, name) for name in names]

    async def work() -> int:
        failed: list[JobError] = []
        for key in keys:
            # One that cannot be changed does not keep the others.
            try:
                await change(backend, key)
            except JobError as error:
                failed.append(error)
            else:
                click.echo(f"{formatting.full_name(key.name)} {done}")
        if failed:
            raise failed[0]
        aim, limit = wait
        codes = [
            await exit_status.within(limit, partial(_settled, backend, key, aim), key, aim)
            for key in keys
            if aim
        ]
        return max(codes, default=0)

    return run_async(work())


async def _settled(backend: Backend, key: Key, aim: str) -> int:
    """A job is Suspended once its pods are told to end; what they hold is free when they have."""
    code = await until(backend, key, aim)
    while aim == conditions.SUSPENDED:
        found = await backend.details(key)
        at_work = any(not pod.end for pod in found.pods)
        if not at_work or not conditions.holds(found.job.conditions, aim):
            break
        await exit_status.pause()
    return code
