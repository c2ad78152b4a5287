"""`odh mpijob get`: jobs by name; with -o the whole object, as the API has it."""

from __future__ import annotations

from typing import Any

import click

from mpi_trainer.api.mpijob import to_wire
from mpi_trainer.cli import formats
from mpi_trainer.cli.backend import answer, connect
from mpi_trainer.cli.formats import Format
from mpi_trainer.cli.mpijob import options, summaries
from mpi_trainer.cli.mpijob.list import shown
from mpi_trainer.cli.voice import voiced
from mpi_trainer.sdk.backend import Backend, JobSummary, Key


@click.command("get")
@options.names
@options.namespace
@options.output
@click.option("-w", "--watch", is_flag=True, help="Show each change until the job has ended.")
@click.option("--no-headers", is_flag=True, help="Leave the line of headings out.")
@voiced
def command(
    *, names: tuple[str, ...], namespace: str, form: Format, watch: bool, no_headers: bool
) -> None:
    """Show jobs by name, as a table, JSON or YAML.

    \b
    odh mpijob get train
    odh mpijob get train -o yaml                               the whole object
    odh mpijob get train -o jsonpath='{.status.startTime}'     one field of it
    """
    if not names:
        raise click.UsageError("give the name of a job; `odh mpijob list` shows all")
    if watch and len(names) != 1:
        raise click.UsageError("--watch follows one job; give one name")
    backend, keys = connect(), [Key(namespace, name) for name in names]
    if form.structured and not watch:
        jobs = answer(_wire(backend, keys))
        data = jobs[0] if len(jobs) == 1 else {"apiVersion": "v1", "kind": "List", "items": jobs}
        click.echo(formats.rendered(data, form))
        return
    found = answer(_summaries(backend, keys))
    if not watch:
        click.echo(shown(found, form, everywhere=False, headers=not no_headers))
        return
    answer(_watch(backend, keys[0], form, headers=not no_headers))


async def _wire(backend: Backend, keys: list[Key]) -> list[dict[str, Any]]:
    return [to_wire(await backend.get(key)) for key in keys]


async def _summaries(backend: Backend, keys: list[Key]) -> list[JobSummary]:
    return [summaries.of(await backend.details(key)) for key in keys]


async def _watch(backend: Backend, key: Key, form: Format, *, headers: bool) -> None:
    async for job in backend.watch(key):
        if form.structured:
            click.echo(formats.rendered(to_wire(job), form))
        else:
            found = summaries.of(await backend.details(key))
            click.echo(shown([found], form, everywhere=False, headers=headers))
        headers = False
