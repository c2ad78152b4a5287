"""`odh mpijob delete` and `prune`: everything of jobs goes. Two at once do no harm."""

from __future__ import annotations

import asyncio

import click

from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.main import USAGE
from mpi_trainer.cli.output import formatting, terminal
from mpi_trainer.cli.output.errors import worded
from mpi_trainer.cli.output.verbosity import say, verbosity_options
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.sdk.backends.backend import Backend, Key
from mpi_trainer.sdk.errors import JobNotFound

AT_ONCE = 8


@click.command("delete")
@options.names
@options.namespace
@click.option("--all", "everything", is_flag=True, help="Every job of the namespace.")
@click.option("--ignore-not-found", is_flag=True, help="A job that is not there is no error.")
@verbosity_options
def command(
    *, names: tuple[str, ...], namespace: str, everything: bool, ignore_not_found: bool
) -> int:
    """Stop jobs and remove everything of them: pods, logs, records.

    Returns when nothing is left. Files that a job wrote to its working directory, to mounts and
    to claims stay.

    \b
    odh mpijob delete train
    odh mpijob delete train-1 train-2 --ignore-not-found
    odh mpijob delete --all
    """
    if bool(names) == everything:
        raise click.UsageError("give names of jobs, or --all")
    backend = connect()
    keys = [Key(namespace, name) for name in dict.fromkeys(names)]
    missing = run_async(_delete(backend, keys, namespace if everything else None))
    if not missing or ignore_not_found or everything:
        return 0
    from mpi_trainer.cli.suggestion import suggestion

    for key in missing:
        problem = f"job {key} not found"
        terminal.say(worded(problem, suggestion(problem)))
    return USAGE


async def _delete(backend: Backend, keys: list[Key], namespace: str | None) -> list[Key]:
    """Deletes them a few at a time; those that were not there."""
    if namespace is not None:
        keys = [summary.key for summary in await backend.list(namespace)]
        if not keys:
            say(f"no jobs in namespace {namespace}")
    turns = asyncio.Semaphore(AT_ONCE)
    missing = []

    async def one(key: Key) -> None:
        try:
            async with turns:
                await backend.delete(key)
        except JobNotFound:
            missing.append(key)
        else:
            click.echo(f"{formatting.full_name(key.name)} deleted")

    # One that cannot be deleted does not keep the others.
    ended = await asyncio.gather(*map(one, keys), return_exceptions=True)
    for error in ended:
        if error is not None:
            raise error
    return missing


@click.command("prune")
@options.namespace
@options.every_namespace
@click.option(
    "--older-than", type=options.Span(), default="7d", show_default=True,
    help="Jobs that ended at least so long ago; 0 for all that ended.",
)  # fmt: skip
@verbosity_options
def prune(*, namespace: str, everywhere: bool, older_than: float) -> None:
    """Delete jobs that ended long ago, with their logs.

    \b
    odh mpijob prune                     what ended more than a week ago
    odh mpijob prune -A --older-than 0   whatever has ended
    """
    gone = run_async(connect().prune(None if everywhere else namespace, older_than))
    for key in gone:
        click.echo(f"{formatting.full_name(key.name)} deleted")
    if not gone:
        say("nothing to prune")
