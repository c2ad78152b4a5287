"""`odh mpijob suspend`, `resume` and `restart`: one change to several jobs, each reported as it is
done; then the wait, where one is asked for."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import click

from mpi_trainer.api.kinds import conditions
from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.cli import context
from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.output import formatting
from mpi_trainer.cli.output.verbosity import say, verbosity_options
from mpi_trainer.cli.verbs.mpijob import following, options
from mpi_trainer.cli.verbs.mpijob.wait import until
from mpi_trainer.sdk.backends.backend import Backend, JobView, Key
from mpi_trainer.sdk.errors import JobError

RESUMED = "resumed"
Change = Callable[[Backend, Key], Coroutine[Any, Any, JobView]]


def _arguments(wait_help: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """The names, the namespace and the wait of each of these commands."""

    def add(function: Callable[..., int]) -> Callable[..., int]:
        wait = click.option("--wait", is_flag=True, help=wait_help)
        named = options.namespace(wait(options.timeout(verbosity_options(function))))
        return options.some_names(named)

    return add


@click.command("suspend")
@_arguments("Return when the pods are gone.")
def suspend(*, names: tuple[str, ...], namespace: str, wait: bool, timeout: float | None) -> int:
    """Stop a job's pods but keep the job; `resume` starts it from the beginning.

    \b
    odh mpijob suspend train --wait
    """
    aim = conditions.SUSPENDED if wait else ""
    return _changed("suspended", names, namespace, lambda b, key: b.suspend(key), (aim, timeout))


@click.command("resume")
@_arguments("Return when the job runs.")
def resume(*, names: tuple[str, ...], namespace: str, wait: bool, timeout: float | None) -> int:
    """Let a suspended job run.

    \b
    odh mpijob resume train
    """
    aim = conditions.RUNNING if wait else ""
    return _changed(RESUMED, names, namespace, lambda b, key: b.resume(key), (aim, timeout))


@click.command("restart")
@_arguments("Return when the job has succeeded or failed.")
def restart(*, names: tuple[str, ...], namespace: str, wait: bool, timeout: float | None) -> int:
    """Run a job again from the beginning.

    A job that has ended is created anew under its name, and its old output goes; one that runs is
    suspended and resumed.

    \b
    odh mpijob restart train --wait
    """
    aim = conditions.SUCCEEDED if wait else ""
    return _changed("restarted", names, namespace, lambda b, key: b.restart(key), (aim, timeout))


def _changed(
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
                before = await backend.get(key)
                if done == RESUMED and not before.suspend and not before.finished:
                    say(f"{key.name} is not suspended; it is {before.state}")
                    continue
                await change(backend, key)
                _note_queue(before, done)
            except JobError as error:
                failed.append(error)
            else:
                click.echo(f"{formatting.full_name(key.name)} {done}")
        if failed:
            raise failed[0]
        aim, limit = wait
        codes = [
            await following.within(limit, partial(_settled, backend, key, aim), key, aim)
            for key in keys
            if aim
        ]
        return max(codes, default=0)

    return run_async(work())


def _note_queue(job: JobView, done: str) -> None:
    queue = job.labels.get(LABEL_QUEUE, "") if context.on_cluster() else ""
    if done == RESUMED and queue:
        more = context.command_line("describe", job.name, job.namespace)
        say(f"{job.name} is in the queue {queue}: Kueue decides when it runs; see `{more}`")


async def _settled(backend: Backend, key: Key, aim: str) -> int:
    """A job is Suspended once its pods are told to end; what they hold is free when they have."""
    code = await until(backend, key, aim)
    while aim == conditions.SUSPENDED:
        found = await backend.details(key)
        at_work = any(not pod.end for pod in found.pods)
        if not at_work or not conditions.holds(found.job.conditions, aim):
            break
        await following.pause()
    return code
