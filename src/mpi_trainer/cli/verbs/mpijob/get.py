"""`odh mpijob get`: jobs by name; with -o the whole object, as the API has it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click
from msgspec.structs import replace

from mpi_trainer.cli import context
from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.main import USAGE
from mpi_trainer.cli.output import formats, terminal
from mpi_trainer.cli.output.errors import worded
from mpi_trainer.cli.output.formats import Format
from mpi_trainer.cli.output.verbosity import verbosity_options
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.cli.verbs.mpijob.list import (
    MPIJOBS,
    ListOptions,
    list_options,
    print_list,
    shown,
)
from mpi_trainer.sdk.backends.backend import Backend, JobSummary, Key
from mpi_trainer.sdk.backends.views import details_summary
from mpi_trainer.sdk.errors import JobNotFound

T = TypeVar("T")


@click.command("get")
@options.names
@list_options
@verbosity_options
def command(*, names: tuple[str, ...], **given: Any) -> int:
    """Show jobs by name, as a table, JSON or YAML; without a name, list them.

    \b
    odh mpijob get                                             as `list` does
    odh mpijob get train
    odh mpijob get train -o yaml                               the whole object
    odh mpijob get train -o jsonpath='{.status.startTime}'     one field of it
    """
    asked = ListOptions(**given)
    if not names:
        _list(asked)
        return 0
    if asked.everywhere or asked.state or asked.selector:
        raise click.UsageError(
            "--all-namespaces, --state and --selector choose among all jobs; give no name"
        )
    if asked.sort_by is not None:
        raise click.UsageError("--sort-by is for lists; named jobs come in the order of the names")
    if asked.watch and len(names) != 1:
        raise click.UsageError("--watch follows one job; give one name")
    keys = [Key(asked.namespace, name) for name in names]
    form, headers = asked.form, not asked.no_headers
    if asked.watch:
        run_async(_watch(connect(), keys[0], form, headers=headers))
        return 0
    backend = connect(single=True)
    if form.structured:
        jobs, missing = run_async(_found(keys, backend.get))
        if jobs:
            click.echo(formats.rendered(_one_or_list([dict(job.manifest) for job in jobs]), form))
    else:
        found, missing = run_async(_found(keys, _summaries(backend, form)))
        if found:
            click.echo(shown(found, form, everywhere=False, headers=headers))
    if missing:
        _report(missing)
    return USAGE if missing else 0


def _summaries(backend: Backend, form: Format) -> Callable[[Key], Awaitable[JobSummary]]:
    """What a table shows of a job, with the whole object where columns are chosen from it."""

    async def whole(key: Key) -> JobSummary:
        job = await backend.get(key)
        return replace(await backend.summary(key), manifest=job.manifest)

    return whole if form.whole else backend.summary


def _report(missing: list[JobNotFound]) -> None:
    from mpi_trainer.cli.suggestion import suggestion

    for error in missing:
        terminal.say(worded(error.problem, suggestion(error.problem) or error.hint))


def _list(asked: ListOptions) -> None:
    """Of the kind that was typed; else of every kind."""
    kind = context.typed_kind()
    if kind == context.MPIJOB:
        print_list(context.list_jobs, MPIJOBS, asked)
        return
    from mpi_trainer.cli.verbs import all_kinds

    all_kinds.print_jobs([kind] if kind else [], asked)


def _one_or_list(jobs: list[dict[str, Any]]) -> dict[str, Any]:
    return jobs[0] if len(jobs) == 1 else {"apiVersion": "v1", "kind": "List", "items": jobs}


async def _found(
    keys: list[Key], get: Callable[[Key], Awaitable[T]]
) -> tuple[list[T], list[JobNotFound]]:
    """What `get` has of them, and an error for each that is not there."""
    jobs, missing = [], []
    for key in keys:
        try:
            jobs.append(await get(key))
        except JobNotFound as error:
            missing.append(error)
    return jobs, missing


async def _watch(backend: Backend, key: Key, form: Format, *, headers: bool) -> None:
    async for job in backend.watch(key):
        if form.structured:
            click.echo(formats.rendered(dict(job.manifest), form))
        else:
            found = replace(details_summary(await backend.details(key)), manifest=job.manifest)
            click.echo(shown([found], form, everywhere=False, headers=headers))
        headers = False
