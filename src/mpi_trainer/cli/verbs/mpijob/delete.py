"""`odh mpijob delete` and `prune`: everything of jobs goes. Two at once do no harm."""

from __future__ import annotations

import asyncio
import sys

import click

from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.main import FAILED, USAGE
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
@click.option("-y", "--yes", is_flag=True, help="Do not ask before --all.")
@click.option("--ignore-not-found", is_flag=True, help="A job that is not there is no error.")
@verbosity_options
def command(
    *, names: tuple[str, ...], namespace: str, everything: bool, yes: bool, ignore_not_found: bool
) -> int:
    """Stop jobs and delete everything that belongs to them: pods, logs, records.

    Returns when nothing is left. Files that a job wrote to its working directory, to mounts and
    to claims stay.

    \b
    odh mpijob delete train
    odh mpijob delete train-1 train-2 --ignore-not-found
    odh mpijob delete --all --yes          without being asked
    """
    if bool(names) == everything:
        raise click.UsageError("give names of jobs, or --all")
    backend = connect()
    keys = [Key(namespace, name) for name in dict.fromkeys(names)]
    if everything:
        keys = [summary.key for summary in run_async(backend.list(namespace))]
        if not keys:
            say(f"no jobs in namespace {namespace}")
            return 0
        if not yes and not _confirmed(len(keys), namespace):
            return FAILED
    missing = run_async(_delete(backend, keys))
    if not missing or ignore_not_found or everything:
        return 0
    from mpi_trainer.cli.suggestion import suggestion

    for key in missing:
        problem = f"job {key} not found"
        terminal.say(worded(problem, suggestion(problem)))
    return USAGE


def _confirmed(count: int, namespace: str) -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError("--all needs --yes where nobody can be asked")
    jobs = "1 job" if count == 1 else f"{count} jobs"
    return click.confirm(f"Delete {jobs} in namespace {namespace}?", err=True)


async def _delete(backend: Backend, keys: list[Key]) -> list[Key]:
    """Deletes them a few at a time; those that were not there."""
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
