"""`odh training list`: every kind of training job that the cluster has, newest first."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from mpi_trainer.cli import everykind, formats, place, terminal
from mpi_trainer.cli.formats import Format
from mpi_trainer.cli.mpijob import options
from mpi_trainer.cli.voice import say, voiced
from mpi_trainer.kube.oneshot import OneShot
from mpi_trainer.sdk.cluster.kinds import KINDS, Kind
from mpi_trainer.sdk.cluster.refusals import told


@click.command("list")
@click.argument("kinds", nargs=-1, metavar="[KIND]...")
@options.namespace
@options.every_namespace
@options.data_output
@voiced
def command(*, kinds: tuple[str, ...], namespace: str, everywhere: bool, form: Format) -> None:
    """List training jobs of every kind, newest first, or of the kinds that are named."""
    wanted = [_kind(word) for word in kinds] or list(KINDS)
    with OneShot(place.config()) as server, told():
        jobs, closed = everykind.listed(server, "" if everywhere else namespace, wanted)
    if form.structured:
        click.echo(formats.rendered(everykind.data(jobs), form))
    elif jobs:
        now = datetime.now(UTC)
        lines = [everykind.row(job, now, everywhere=everywhere) for job in jobs]
        click.echo(terminal.table(everykind.columns(everywhere=everywhere), lines))
    else:
        say("no jobs" if everywhere else f"no jobs in namespace {namespace}")
    if closed:
        say(f"not shown, because you may not list them: {', '.join(closed)}")


def _kind(word: str) -> Kind:
    found = everykind.kind_of(word)
    if found is None:
        known = ", ".join(kind.resource.kind.lower() for kind in KINDS)
        raise click.UsageError(f"{word!r} is not a kind of training job; there are {known}")
    return found
