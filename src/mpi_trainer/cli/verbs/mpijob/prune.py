"""`odh mpijob prune`: room again, by deleting jobs that ended long ago."""

from __future__ import annotations

import click

from mpi_trainer.cli.backend import answer, connect
from mpi_trainer.cli.output import words
from mpi_trainer.cli.output.verbosity import say, voiced
from mpi_trainer.cli.verbs.mpijob import options


@click.command("prune")
@options.namespace
@options.every_namespace
@click.option(
    "--older-than", type=options.Span(), default="7d", show_default=True,
    help="Jobs that ended at least so long ago; 0 for all that ended.",
)  # fmt: skip
@voiced
def command(*, namespace: str, everywhere: bool, older_than: float) -> None:
    """Delete jobs that ended long ago, with their logs.

    \b
    odh mpijob prune                     what ended more than a week ago
    odh mpijob prune -A --older-than 0   whatever has ended
    """
    gone = answer(connect().prune(None if everywhere else namespace, older_than))
    for key in gone:
        click.echo(f"{words.full_name(key.name)} deleted")
    if not gone:
        say("nothing to prune")
