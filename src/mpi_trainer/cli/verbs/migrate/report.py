"""`odh migrate report`: how many jobs of each API there are, and what each would take."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import msgspec

from mpi_trainer.cli import context
from mpi_trainer.cli.output import terminal
from mpi_trainer.cli.verbs.migrate.page import page
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.migrate.progress import JobProgress, Progress, progress
from mpi_trainer.sdk.backends.backend import JobQuery

COLUMNS = ("NAMESPACE", "NAME", "KIND", "API", "ENDED", "EFFORT", "REASON")
_MOST_REASONS = 3


@click.command("report")
@options.namespace
@options.every_namespace
@click.option("-o", "--output", type=click.Choice(["table", "json", "html"]), default="table")
def command(*, namespace: str, everywhere: bool, output: str) -> None:
    """Say what is left to migrate, over namespaces.

    Jobs by API and version, and for each MPIJob what stands in the way of a TrainJob: `none` needs
    nothing, `some` has remarks to read, `blocked` must be changed first.

    \b
    odh migrate report
    odh migrate report -o json
    odh migrate report -A -o html > migration.html
    """
    found = context.list_jobs(None if everywhere else namespace, JobQuery(manifests=True))
    left = progress((job.manifest or {}, job.completed is not None) for job in found)
    if output == "json":
        click.echo(_json(left))
        return
    if output == "html":
        where = "all namespaces" if everywhere else f"the namespace {namespace}"
        click.echo(page(left, where, datetime.now(UTC)))
        return
    if not left.jobs:
        terminal.say("no jobs")
        return
    click.echo(terminal.table(("KIND", "JOBS"), _counts(left.by_api)))
    click.echo()
    click.echo(terminal.table(("EFFORT", "MPIJOBS"), _counts(left.by_effort)))
    click.echo()
    click.echo(terminal.table(COLUMNS, map(_row, left.jobs)))


def _counts(counts: dict[str, int]) -> list[tuple[str, str]]:
    return [(name, str(count)) for name, count in counts.items()] or [("-", "0")]


def _row(job: JobProgress) -> tuple[str, ...]:
    more = len(job.reasons) - _MOST_REASONS
    shown = "; ".join(job.reasons[:_MOST_REASONS]) + (f"; and {more} more" if more > 0 else "")
    ended = "yes" if job.ended else "no"
    return (job.namespace, job.name, job.kind, job.api, ended, job.effort, shown or "-")


def _json(left: Progress) -> str:
    data = {
        "byApi": left.by_api,
        "byEffort": left.by_effort,
        "byReason": left.by_reason,
        "jobs": msgspec.to_builtins(left.jobs),
    }
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
