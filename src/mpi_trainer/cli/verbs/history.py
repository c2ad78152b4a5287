"""`odh history`: what `odh run` has run on this machine, newest first."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime

import click
import msgspec

from mpi_trainer.cli.output import formats, formatting, terminal
from mpi_trainer.cli.output.formats import Format
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.local.jobs import run_history

COLUMNS = ("AGE", "STATE", "DURATION", "RANKS", "MPI", "FOLDER", "COMMAND")


@click.command("history")
@click.option("--limit", type=click.IntRange(1), default=20, help="At most this many.")
@options.data_output
def command(*, limit: int, form: Format) -> None:
    """List what `odh run` has run on this machine, newest first.

    \b
    odh history
    odh history --limit 1 -o jsonpath='{.items[0].message}'
    """
    found = run_history.records()[: -limit - 1 : -1]
    if form.structured:
        items = [msgspec.to_builtins(record) for record in found]
        click.echo(formats.rendered({"items": items}, form))
    elif found:
        now = datetime.now(UTC)
        click.echo(terminal.table(COLUMNS, [_row(record, now) for record in found]))
    else:
        terminal.say("no runs yet; try `odh run -w 2 -- hostname`")


def _row(record: run_history.RunRecord, now: datetime) -> tuple[str, ...]:
    return (
        formatting.between(record.started, now),
        record.state,
        formatting.duration(record.seconds),
        str(record.ranks),
        record.mpi,
        record.folder,
        formatting.one_line(shlex.join(record.command)),
    )
