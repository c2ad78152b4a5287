"""`odh mpijob prune`: room again, by deleting jobs that ended long ago."""

from __future__ import annotations

import click

from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.output import formatting
from mpi_trainer.cli.output.verbosity import say, verbosity_options
from mpi_trainer.cli.verbs.mpijob import options


@click.command("prune")
@options.namespace
@options.every_namespace
@click.option(
    "--older-than", type=options.Span(), default="7d", show_default=True,
    help="Jobs that ended at least so long ago; 0 for all that ended.",
)  # fmt: skip
@verbosity_options
def command(*, namespace: str, everywhere: bool, older_than: float) -> None:
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
