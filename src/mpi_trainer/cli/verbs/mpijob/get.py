"""`odh mpijob get`: jobs by name; with -o the whole object, as the API has it."""

from __future__ import annotations

from typing import Any

import click

from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.output import formats
from mpi_trainer.cli.output.formats import Format
from mpi_trainer.cli.output.verbosity import verbosity_options
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.cli.verbs.mpijob.list import shown
from mpi_trainer.sdk.backends.backend import Backend, JobSummary, Key
from mpi_trainer.sdk.backends.views import details_summary


@click.command("get")
@options.names
@options.namespace
@options.output
@click.option("-w", "--watch", is_flag=True, help="Show each change until the job has ended.")
@click.option("--no-headers", is_flag=True, help="Leave the line of headings out.")
@verbosity_options
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
    keys = [Key(namespace, name) for name in names]
    if watch:
        run_async(_watch(connect(), keys[0], form, headers=not no_headers))
        return
    backend = connect(single=True)
    if form.structured:
        jobs = run_async(_manifests(backend, keys))
        click.echo(formats.rendered(_one_or_list(jobs), form))
    else:
        found = run_async(_summaries(backend, keys))
        click.echo(shown(found, form, everywhere=False, headers=not no_headers))


def _one_or_list(jobs: list[dict[str, Any]]) -> dict[str, Any]:
    return jobs[0] if len(jobs) == 1 else {"apiVersion": "v1", "kind": "List", "items": jobs}


async def _manifests(backend: Backend, keys: list[Key]) -> list[dict[str, Any]]:
    return [dict((await backend.get(key)).manifest) for key in keys]


async def _summaries(backend: Backend, keys: list[Key]) -> list[JobSummary]:
    return [await backend.summary(key) for key in keys]


async def _watch(backend: Backend, key: Key, form: Format, *, headers: bool) -> None:
    async for job in backend.watch(key):
        if form.structured:
            click.echo(formats.rendered(dict(job.manifest), form))
        else:
            found = details_summary(await backend.details(key))
            click.echo(shown([found], form, everywhere=False, headers=headers))
        headers = False
