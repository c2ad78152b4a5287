"""`odh mpijob cp`: fetches what a job has written, such as a trained model."""

from __future__ import annotations

import click

from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.output.verbosity import say, verbosity_options
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.sdk.backends.backend import Key


@click.command("cp")
@click.argument("source", metavar="NAME:PATH", shell_complete=options.completed_names)
@click.argument("destination", type=click.Path(), metavar="DEST")
@options.namespace
@verbosity_options
def command(*, source: str, destination: str, namespace: str) -> None:
    """Copy a file or directory out of a job.

    On this machine also out of one that has ended. On a cluster pods that have ended cannot be
    read: keep results on a claim (--pvc).

    \b
    odh mpijob cp train:model.pt best.pt
    odh mpijob cp train:checkpoints ./copies
    """
    name, colon, path = source.partition(":")
    if not colon or not name or not path:
        raise click.UsageError(f"{source!r} is not NAME:PATH, such as train:model.pt")
    run_async(connect().fetch(Key(namespace, name), path, destination))
    say(f"copied {path} of {name} to {destination}")
